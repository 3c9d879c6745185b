"""The waits of the driver and of the delivery, cut to next to nothing."""

from __future__ import annotations

import pytest

from signoff.turns import delivery as delivery_module
from signoff.turns import driver as driver_module


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_module, "CLICK_GRACE", 0.01)
    monkeypatch.setattr(delivery_module, "MOMENT", 0.005)
    monkeypatch.setattr(delivery_module, "EVERY", 0.01)
    monkeypatch.setattr(delivery_module, "DELAYS", (0.0, 0.0, 0.0))
    monkeypatch.setattr(delivery_module, "CARD_DELAYS", (0.0, 0.01))
    monkeypatch.setattr(driver_module, "STEP_DELAYS", (0.0, 0.0, 0.0, 0.0))
    monkeypatch.setattr(driver_module, "END_EVERY", 0.01)

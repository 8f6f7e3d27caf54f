"""Colour maps and colour scales, shared by the window and the printed figures. Needs numpy only.

A pixel is a uint8: 0 is a masked cell, 1 … 255 span the levels. `lut` turns pixels into colours, `Levels` values into
pixels and back, so that a window, a figure and a colour bar cannot disagree.

Provenance of the tables (256 sRGB colours each, six hexadecimal digits a colour, low to high):
viridis    S. van der Walt and N. Smith, matplotlib. CC0 1.0.
cividis    J. Nuñez, C. Anderton and R. Renslow, PLoS ONE 13(7) e0199239, 2018, as in matplotlib. CC0 1.0.
CET-CBL1, CET-CBD1   P. Kovesi, "Good Colour Maps: How to Design Them", arXiv:1509.03700, 2015, colorcet.com; made for
           red-green colour blindness, one-signed and diverging. © Peter Kovesi, CC BY 4.0, converted to 8 bits;
           of CET-CBL1 the part that stands off the grounds of both themes (`_SPANS`): it begins nearly black and
           ends nearly white.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.errors import BadValueError, UnknownNameError
from model.protocol.attention_requests import MASKED, Scale

Array = NDArray[Any]
Float32 = NDArray[np.float32]
Rgba = tuple[int, int, int, int]

N_COLOURS = 255
"""Pixels 1 … 255."""
LOG_RANGE = 1e-5
"""A logarithmic scale begins at this fraction of its highest value, unless the data or the caller says higher."""
SIGNED_LOG_RANGE = 1e-3
"""A signed logarithmic scale is straight up to this fraction of its highest value, and logarithmic beyond."""

ONE_SIGNED = ("viridis", "cividis", "CET-CBL1")
SIGNED = ("CET-CBD1",)


_SPANS = {"CET-CBL1": (27.0, 242.0)}
"""The part of a table that is used, where not all of it: every colour is at least 10 (CIEDE2000) from the surfaces of
the window's and the figures' themes, masked cells among them."""


def colormap_for(name: str, *, signed: bool) -> str:
    """The map to draw with: `name` where its kind fits the data, else the first one of the kind that does."""
    _table(name)
    fitting = SIGNED if signed else ONE_SIGNED
    return name if name in fitting else fitting[0]


def lut(name: str, masked: Rgba = (0, 0, 0, 0)) -> NDArray[np.uint8]:
    """(256, 4) RGBA: row 0 is `masked`, rows 1 … 255 the map from low to high. Raises UnknownNameError."""
    colours = np.frombuffer(bytes.fromhex(_table(name)), dtype=np.uint8).reshape(256, 3)
    at = np.linspace(*_SPANS.get(name, (0.0, 255.0)), N_COLOURS)
    table = np.empty((256, 4), dtype=np.uint8)
    table[0] = masked
    for channel in range(3):
        table[1:, channel] = np.rint(np.interp(at, np.arange(256), colours[:, channel]))
    table[1:, 3] = 255
    return table


def _table(name: str) -> str:
    if name not in _TABLES:
        raise UnknownNameError("colour map", name, _TABLES)
    return _TABLES[name]


@dataclass(frozen=True, kw_only=True)
class Levels:
    """From a value to a place on the colour bar, 0 … 1, and back.

    linear: (v - low) / (high - low).  sqrt: its square root.  log: log(v / low) / log(high / low), low > 0.
    Signed scales are symmetric about 0 (low = -high, 0 in the middle); their two halves are |v| / high, its square
    root, or log(1 + |v| / s) / log(1 + high / s) with s = high · 1e-3. Values outside saturate. Raises BadValueError.
    """

    low: float
    high: float
    scale: Scale = "linear"
    signed: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise BadValueError("levels", (self.low, self.high), "two finite numbers, the first one smaller")
        if self.signed and self.low != -self.high:
            raise BadValueError("levels", (self.low, self.high), "-x and x, as the data is signed")
        if self.scale == "log" and not self.signed and self.low <= 0:
            raise BadValueError("levels", (self.low, self.high), "positive numbers for a logarithmic scale")

    @classmethod
    def spanning(
        cls, low: float, high: float, *, scale: Scale = "linear", signed: bool = False, fixed: bool = False
    ) -> Levels:
        """Levels for data whose visible extremes are `low` and `high` (NaN: there is none); `fixed`: 0 … 1.

        One-signed data starts at 0 (log: at the lowest value over 1e-5 of the highest); a constant gets a span.
        """
        if fixed:
            low, high, signed = 0.0, 1.0, False
        low, high = (value if math.isfinite(value) else 0.0 for value in (low, high))
        if signed:
            top = max(abs(low), abs(high)) or 1.0
            return cls(low=-top, high=top, scale=scale, signed=True)
        top = high if high > 0 else 1.0
        bottom = min(max(low, top * LOG_RANGE), top / 10) if scale == "log" else 0.0
        return cls(low=bottom, high=top, scale=scale, signed=False)

    def place(self, values: Array) -> Float32:
        """Where each value lies, 0 … 1, in the shape of `values`; NaN stays NaN."""
        data: Float32 = np.asarray(values, dtype=np.float32)
        if self.signed:
            half = self._half(np.minimum(np.abs(data) / np.float32(self.high), np.float32(1)))
            np.copysign(half, data, out=half)
            half *= np.float32(0.5)
            half += np.float32(0.5)
            return half
        place: Float32
        if self.scale == "log":
            place = np.log(np.maximum(data, np.float32(self.low)) / np.float32(self.low))
            place /= np.float32(math.log(self.high / self.low))
        else:
            place = (data - np.float32(self.low)) / np.float32(self.high - self.low)
        np.clip(place, np.float32(0), np.float32(1), out=place)
        return np.sqrt(place, out=place) if self.scale == "sqrt" else place

    def value(self, places: Array) -> NDArray[np.float64]:
        """The values at places 0 … 1 of the colour bar: the inverse of `place`."""
        at: NDArray[np.float64] = np.asarray(places, dtype=np.float64)
        if self.signed:
            half = np.abs(2 * at - 1)
            if self.scale == "sqrt":
                half **= 2
            elif self.scale == "log":
                half = np.expm1(half * math.log1p(1 / SIGNED_LOG_RANGE)) * SIGNED_LOG_RANGE
            return np.copysign(half, at - 0.5) * self.high
        if self.scale == "log":
            return self.low * np.exp(at * math.log(self.high / self.low))
        return self.low + (at**2 if self.scale == "sqrt" else at) * (self.high - self.low)

    def pixels(self, values: Array) -> NDArray[np.uint8]:
        """One pixel a value: 1 … 255, or MASKED where the value is NaN."""
        place = self.place(values)
        hidden = np.isnan(place)
        place[hidden] = 0
        pixels: NDArray[np.uint8] = np.rint(place * np.float32(N_COLOURS - 1)).astype(np.uint8)
        pixels += np.uint8(1)
        pixels[hidden] = MASKED
        return pixels

    def _half(self, share: Float32) -> Float32:
        if self.scale == "linear":
            return share
        half: Float32 = np.sqrt(share) if self.scale == "sqrt" else np.log1p(share / np.float32(SIGNED_LOG_RANGE))
        if self.scale == "log":
            half /= np.float32(math.log1p(1 / SIGNED_LOG_RANGE))
        return half


_TABLES = {
    "viridis": (
        "44015444025645045745055946075a46085c460a5d460b5e470d60470e6147106347116447136548146748166848176948186a481a6c"
        "481b6d481c6e481d6f481f70482071482173482374482475482576482677482878482979472a7a472c7a472d7b472e7c472f7d46307e"
        "46327e46337f463480453581453781453882443983443a83443b84433d84433e85423f85424086424186414287414487404588404688"
        "3f47883f48893e49893e4a893e4c8a3d4d8a3d4e8a3c4f8a3c508b3b518b3b528b3a538b3a548c39558c39568c38588c38598c375a8c"
        "375b8d365c8d365d8d355e8d355f8d34608d34618d33628d33638d32648e32658e31668e31678e31688e30698e306a8e2f6b8e2f6c8e"
        "2e6d8e2e6e8e2e6f8e2d708e2d718e2c718e2c728e2c738e2b748e2b758e2a768e2a778e2a788e29798e297a8e297b8e287c8e287d8e"
        "277e8e277f8e27808e26818e26828e26828e25838e25848e25858e24868e24878e23888e23898e238a8d228b8d228c8d228d8d218e8d"
        "218f8d21908d21918c20928c20928c20938c1f948c1f958b1f968b1f978b1f988b1f998a1f9a8a1e9b8a1e9c891e9d891f9e891f9f88"
        "1fa0881fa1881fa1871fa28720a38620a48621a58521a68522a78522a88423a98324aa8325ab8225ac8226ad8127ad8128ae8029af7f"
        "2ab07f2cb17e2db27d2eb37c2fb47c31b57b32b67a34b67935b77937b87838b9773aba763bbb753dbc743fbc7340bd7242be7144bf70"
        "46c06f48c16e4ac16d4cc26c4ec36b50c46a52c56954c56856c66758c7655ac8645cc8635ec96260ca6063cb5f65cb5e67cc5c69cd5b"
        "6ccd5a6ece5870cf5773d05675d05477d1537ad1517cd2507fd34e81d34d84d44b86d54989d5488bd6468ed64590d74393d74195d840"
        "98d83e9bd93c9dd93ba0da39a2da37a5db36a8db34aadc32addc30b0dd2fb2dd2db5de2bb8de29bade28bddf26c0df25c2df23c5e021"
        "c8e020cae11fcde11dd0e11cd2e21bd5e21ad8e219dae319dde318dfe318e2e418e5e419e7e419eae51aece51befe51cf1e51df4e61e"
        "f6e620f8e621fbe723fde725"
    ),
    "cividis": (
        "00224e00234f00245100255300255400265600275800285900285b00295d002a5f002a61002b62002c64002c66002d68002e6a002e6c"
        "002f6d00306f0030700031700031710132710533710833700c34700f357012357014367016377018376f1a386f1c396f1e3a6f203a6f"
        "213b6e233c6e243c6e263d6e273e6e293f6e2a3f6d2b406d2d416d2e416d2f426d31436d32436d33446d34456c35456c36466c38476c"
        "39486c3a486c3b496c3c4a6c3d4a6c3e4b6c3f4c6c404c6c414d6c424e6c434e6c444f6c45506c46516c47516c48526c49536c4a536c"
        "4b546c4c556c4d556c4e566c4f576c50576c51586d52596d535a6d545a6d555b6d555c6d565c6d575d6d585e6d595e6e5a5f6e5b606e"
        "5c616e5d616e5e626e5e636f5f636f60646f61656f62656f636670646770656870656870666970676a71686a71696b716a6c716b6d72"
        "6c6d726c6e726d6f726e6f736f70737071737172747272747273747374757474757575757676767777767777777878777979777a7a78"
        "7b7a787c7b787d7c787e7c787e7d787f7e78807f78817f788280798381798482798582798683798784788885788985788a86788b8778"
        "8c88788d88788e89788f8a78908b78918b78928c78928d78938e78948e77958f779690779791779892779992779a93769b94769c9576"
        "9d95769e96769f9775a09875a19975a29975a39a74a49b74a59c74a69c74a79d73a89e73a99f73aaa073aba072aca172ada272aea371"
        "afa471b0a571b1a570b3a670b4a76fb5a86fb6a96fb7a96eb8aa6eb9ab6dbaac6dbbad6dbcae6cbdae6cbeaf6bbfb06bc0b16ac1b26a"
        "c2b369c3b369c4b468c5b568c6b667c7b767c8b866c9b965cbb965ccba64cdbb63cebc63cfbd62d0be62d1bf61d2c060d3c05fd4c15f"
        "d5c25ed6c35dd7c45cd9c55cdac65bdbc75adcc859ddc858dec958dfca57e0cb56e1cc55e2cd54e4ce53e5cf52e6d051e7d150e8d24f"
        "e9d34eead34cebd44bedd54aeed649efd748f0d846f1d945f2da44f3db42f5dc41f6dd3ff7de3ef8df3cf9e03afbe138fce236fde334"
        "fee434fee535fee636fee838"
    ),
    "CET-CBL1": (
        "11111111121312131512131713141913151b13161d14161f141720141822141824141926141a28141b2a141b2c141c2e141d2f141d31"
        "131e33131f35131f3713203912213a12223c12223e1123401124421124441025451026470f27490e284b0e284c0d294e0c2a500b2b52"
        "0b2b540a2c55092d57082e59072e5b062f5c06305e05315f04316103326302336402346601356800356900366b00376c00386e00386f"
        "003970003a72003b73003c75003c76003d77003e79003f7a003f7b01407c01417e03427f0443800544810744820945830b46840d4785"
        "0f4886114887134988154a89174b891a4b8a1c4c8b1e4d8b204e8c224f8d24508d26508e28518e2a528e2d538e2f548f31548f33558f"
        "35568f37578f3a588e3c598e3e5a8e405a8d435b8d455c8c475d8b495e8b4b5e8a4d5f894f6089516188536287556387576386586485"
        "5a65855c66845e67835f6883616982636a81646b81666b80686c7f696d7e6b6e7e6c6f7d6e707c6f717b71717b72727a747379757479"
        "7775787876777a77767b78767c79757e79747f7a73817b72827c72847d71857e70867f6f88806f89816e8a826d8c826c8d836c8f846b"
        "90856a918669928768948867958967968966988a65998b649b8c639c8d629d8e619e8f60a09060a1915fa2925ea4935da5935ca6945b"
        "a8955ba9965aaa975aab9859ac9959ad9a59ae9b59b09c58b19d59b29e59b39f59b49f59b5a05ab6a15ab7a25ab8a35bb9a45cbaa55c"
        "bba65dbca75ebda85ebea95fc0aa60c1ab61c2ac62c3ad63c3ae64c4af65c5af67c6b068c7b169c8b26ac9b36ccab46dcbb56eccb670"
        "cdb771ceb873cfb975d0ba76d0bb78d1bc79d2bd7bd3be7dd4bf7ed5c080d5c182d6c284d7c386d8c488d9c58adac68bdac78edbc890"
        "dcc992ddca94ddcb96decc98dfcd9adfce9ce0cf9ee1d0a0e1d1a2e2d2a5e3d3a7e3d4a9e4d5abe5d6aee6d7b0e6d8b2e7d9b5e7dab7"
        "e8dbbae8dcbce9ddbee9dec1eadfc4eae0c6ebe1c8ebe2cbece3ceece4d0ede5d3ede6d5eee7d8eee8dbeee9ddefeae0efebe3efece6"
        "f0ede8f0eeebf0efeef0f1f0"
    ),
    "CET-CBD1": (
        "3a90fe3e91fe4192fe4492fe4693fe4994fe4b94fe4e95fe5096fd5396fd5597fd5798fd5999fd5c99fd5e9afd609bfd619cfd639cfd"
        "659dfd679efd699efd6b9ffc6da0fc6ea0fc70a1fc72a2fc74a3fc75a3fc77a4fc78a5fc7aa5fc7ca6fc7da7fc7fa8fb80a8fb82a9fb"
        "83aafb85abfb86abfb88acfb89adfb8aadfb8caefb8daffb8fb0fa90b0fa92b1fa93b2fa94b2fa96b3fa97b4fa98b5fa9ab6fa9bb6fa"
        "9cb7fa9eb8f99fb9f9a0b9f9a1baf9a3bbf9a4bbf9a5bcf9a7bdf9a8bef9a9bef9aabff8abc0f8adc1f8aec2f8afc2f8b0c3f8b1c4f8"
        "b3c5f8b4c5f8b5c6f7b6c7f7b7c8f7b9c8f7bac9f7bbcaf7bccbf7bdcbf7beccf7c0cdf6c1cef6c2cff6c3cff6c4d0f6c5d1f6c6d2f6"
        "c7d2f6c9d3f6cad4f5cbd5f5ccd5f5cdd6f5ced7f5cfd8f5d0d8f5d1d9f5d3daf4d4dbf4d5dcf4d6ddf4d7ddf4d8def4d9dff4dae0f4"
        "dbe0f3dce1f3dde2f3dee3f3dfe3f3e0e4f3e2e5f3e3e6f3e4e7f2e5e8f2e6e8f2e7e9f2e8eaf1e9eaf1eaebf1eaecf0ebecf0ececef"
        "ecedeeedededededeceeedebeeeceaeeece8eeece7edebe5edeae4edeae2ede9e0ece8dfece8ddece7dbebe6daebe5d8eae4d6eae3d5"
        "e9e3d3e9e2d1e9e1d0e8e0cee8e0cce7dfcae7dec9e6ddc7e6dcc5e5dcc4e5dbc2e4dac0e4d9bfe3d8bde3d8bbe2d7bae2d6b8e1d5b6"
        "e1d5b5e1d4b3e0d3b1e0d2b0dfd1aedfd1acded0abdecfa9ddcea7ddcea6dccda4dccca2dbcba1daca9fdaca9dd9c99cd9c89ad8c798"
        "d8c797d7c695d7c594d6c492d5c490d5c38fd4c28dd4c18bd3c18ad3c088d2bf86d2be85d1bd83d0bd82d0bc80cfbb7ecfba7cceba7b"
        "ceb979cdb878ccb876ccb774cbb673cab571cab56fc9b46ec9b36cc8b26bc7b169c7b167c6b065c6af64c5af62c4ae61c4ad5fc3ac5d"
        "c2ac5cc2ab5ac1aa58c1a956c0a955bfa853bea751bea750bda64ebda54cbca44abba349bba347baa245b9a144b9a142b8a040b79f3e"
        "b79f3cb69e3bb59d39b59c37b49c35b39b33b29a31b29a2fb1992db0982bb09729af9727ae9624ad9522ad9420ac941dab931aab9217"
        "aa9214a99111a8900da89008"
    ),
}

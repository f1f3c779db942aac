"""The profile `zh_en_special_v1`: Chinese and English special text, frozen.

Its rules and tables never change their meaning; what should be read otherwise needs a profile
with another name.
"""

from typing import Final

PROFILE: Final = "zh_en_special_v1"

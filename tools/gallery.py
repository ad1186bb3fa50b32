"""Makes the README's pictures from real runs: make gallery"""

from __future__ import annotations

from pathlib import Path

from ddp_lesson import torchrun

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Run, draw, save into docs/."""
    run = torchrun(str(ROOT / "tools" / "gallery_train.py"), nproc_per_node=2)
    run.plot_timeline().savefig(ROOT / "docs" / "timeline.png")
    run = torchrun(str(ROOT / "ddp_lesson" / "scripts" / "step4_padding.py"), nproc_per_node=3)
    run.plot_samples().savefig(ROOT / "docs" / "samples.png")


if __name__ == "__main__":
    main()

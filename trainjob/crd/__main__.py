"""`python -m trainjob.crd` writes the files that are derived from the TrainJob type into the repository."""

from trainjob.crd.generate import ROOT, generated_files

if __name__ == "__main__":
    for path, text in generated_files().items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")

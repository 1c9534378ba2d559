# tools/release.sh fills in version and checksums. It is a formula and no cask: it serves
# Linux too, and macOS does not quarantine what it installs. The programs and plugins stay
# in one folder: amux looks for its parts beside itself, and checks their hashes.
class Amux < Formula
  desc "One host for every coding agent"
  homepage "https://github.com/amux-dev/amux"
  version "@version@"
  license "MIT"

  on_macos do
    on_arm do
      url "https://github.com/amux-dev/amux/releases/download/v@version@/amux_@version@_darwin_arm64.tar.gz"
      sha256 "@darwin_arm64@"
    end
    on_intel do
      url "https://github.com/amux-dev/amux/releases/download/v@version@/amux_@version@_darwin_amd64.tar.gz"
      sha256 "@darwin_amd64@"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/amux-dev/amux/releases/download/v@version@/amux_@version@_linux_arm64.tar.gz"
      sha256 "@linux_arm64@"
    end
    on_intel do
      url "https://github.com/amux-dev/amux/releases/download/v@version@/amux_@version@_linux_amd64.tar.gz"
      sha256 "@linux_amd64@"
    end
  end

  def install
    man1.install Dir["man/man1/*"]
    bash_completion.install "completions/amux.bash" => "amux"
    zsh_completion.install "completions/amux.zsh" => "_amux"
    fish_completion.install "completions/amux.fish"
    libexec.install "plugins", "LICENSE", "NOTICE", *Dir["amux*"]
    bin.install_symlink libexec/"amux"
  end

  test do
    assert_match "hello", shell_output("#{bin}/amux run demo '[say:hello]'")
  end
end

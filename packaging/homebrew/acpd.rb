# A formula of Homebrew: `brew install --formula ./acpd.rb`, `brew services start acpd`.
class Acpd < Formula
  desc "Daemon that keeps AI coding agents alive, and its command-line acpctl"
  homepage "REPOSITORY"
  url "REPOSITORY/archive/refs/tags/v0.2.0.tar.gz"
  sha256 "SHA256"
  license any_of: ["MIT", "Apache-2.0"]
  head "REPOSITORY.git", branch: "main"

  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/acpd")
    system "cargo", "install", *std_cargo_args(path: "crates/acpctl")
    [:bash, :zsh, :fish].each do |shell|
      script = Utils.safe_popen_read(bin/"acpctl", "completions", shell.to_s)
      case shell
      when :bash then (bash_completion/"acpctl").write script
      when :zsh then (zsh_completion/"_acpctl").write script
      when :fish then (fish_completion/"acpctl.fish").write script
      end
    end
    mkdir "man" do
      system bin/"acpctl", "man", "."
      system bin/"acpctl-mcp", "--man", "."
      system bin/"acpctl-web", "man", "."
      system bin/"acpd", "man", "."
      man1.install Dir["*.1"]
    end
  end

  # As launchd/dev.acpd.acpd.plist: restarted after a failure alone, never throttled.
  service do
    run [opt_bin/"acpd", "run"]
    keep_alive successful_exit: false
    process_type :interactive
    error_log_path var/"log/acpd.log"
  end

  test do
    ENV["XDG_STATE_HOME"] = testpath/"state"
    ENV["XDG_RUNTIME_DIR"] = testpath/"run"
    assert_match "You said: hello", shell_output("#{bin}/acpctl run -N -a demo -s main hello")
    system bin/"acpctl", "daemon", "stop"
  end
end

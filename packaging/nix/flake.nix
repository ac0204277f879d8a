{
  description = "acpd, a daemon that keeps AI coding agents alive";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixpkgs-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "aarch64-darwin" ];
      each = nixpkgs.lib.genAttrs systems;
    in
    {
      packages = each (
        system:
        let
          pkgs = nixpkgs.legacyPackages.${system};
        in
        {
          default = pkgs.rustPlatform.buildRustPackage {
            pname = "acpd";
            version = "0.2.0";
            src = ../..;
            cargoLock.lockFile = ../../Cargo.lock;
            cargoBuildFlags = [ "--package" "acpd" "--package" "acpctl" ];
            # They start agents, browsers and service managers.
            doCheck = false;
            nativeBuildInputs = [ pkgs.installShellFiles ];
            postInstall = ''
              for shell in bash fish zsh; do
                installShellCompletion --cmd acpctl --$shell <($out/bin/acpctl completions $shell)
              done
              mkdir man
              $out/bin/acpctl man man && $out/bin/acpctl-web man man && $out/bin/acpd man man
              $out/bin/acpctl-mcp --man man
              installManPage man/*.1
            '';
            meta = {
              description = "A daemon that keeps AI coding agents alive, and its command line acpctl";
              license = [ nixpkgs.lib.licenses.mit nixpkgs.lib.licenses.asl20 ];
              mainProgram = "acpctl";
            };
          };
        }
      );

      homeManagerModules.default =
        { config, lib, pkgs, ... }:
        let
          acpd = config.services.acpd;
        in
        {
          options.services.acpd = {
            enable = lib.mkEnableOption "acpd, started when its socket is first used";
            package = lib.mkOption {
              type = lib.types.package;
              default = self.packages.${pkgs.stdenv.hostPlatform.system}.default;
              description = "The package of acpd.";
            };
          };
          # As systemd/acpd.service and systemd/acpd.socket, where every line is explained.
          config = lib.mkIf acpd.enable {
            home.packages = [ acpd.package ];
            systemd.user.services.acpd = {
              Unit = {
                Description = "Keeps AI coding agents alive";
                StartLimitIntervalSec = "5min";
                StartLimitBurst = 20;
              };
              Service = {
                Type = "notify";
                ExecStart = "${acpd.package}/bin/acpd run";
                ExecReload = "${pkgs.coreutils}/bin/kill -HUP $MAINPID";
                Restart = "on-failure";
                RestartSec = "200ms";
                RestartSteps = 6;
                RestartMaxDelaySec = "10s";
                TimeoutStartSec = "60s";
                WatchdogSec = "30s";
                KillMode = "process";
                TimeoutStopSec = "45s";
                Delegate = "yes";
                OOMPolicy = "continue";
              };
              Install = {
                Also = "acpd.socket";
                WantedBy = [ "default.target" ];
              };
            };
            systemd.user.sockets.acpd = {
              Unit.Description = "Socket of acpd";
              Socket = {
                ListenStream = "%t/acpd/acpd.sock";
                FileDescriptorName = "control";
                SocketMode = "0600";
                DirectoryMode = "0700";
              };
              Install.WantedBy = [ "sockets.target" ];
            };
          };
        };
    };
}

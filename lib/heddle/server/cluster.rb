# frozen_string_literal: true

module Heddle
  class Server
    # Several processes that serve the same sockets. The master opens them and loads nothing of the application; it
    # forks the mold, which loads the application and forks the workers, which serve. Restarts are the master's.
    module Cluster
      autoload :Backoff, "heddle/server/cluster/backoff"
      autoload :BootDetails, "heddle/server/cluster/boot_details"
      autoload :BootThreads, "heddle/server/cluster/boot_threads"
      autoload :SharedResources, "heddle/server/cluster/shared_resources"
      autoload :ExitReason, "heddle/server/cluster/exit_reason"
      autoload :Fleet, "heddle/server/cluster/fleet"
      autoload :HealthCheck, "heddle/server/cluster/health_check"
      autoload :Inheritance, "heddle/server/cluster/inheritance"
      autoload :JobsHandle, "heddle/server/cluster/jobs_handle"
      autoload :Master, "heddle/server/cluster/master"
      autoload :MemoryGuard, "heddle/server/cluster/memory_guard"
      autoload :MessageSocket, "heddle/server/cluster/message_socket"
      autoload :MoldProcess, "heddle/server/cluster/mold_process"
      autoload :MoldHandle, "heddle/server/cluster/mold_handle"
      autoload :MoldSupervisor, "heddle/server/cluster/mold_supervisor"
      autoload :MoldSpawner, "heddle/server/cluster/mold_spawner"
      autoload :ReserveDemand, "heddle/server/cluster/reserve_demand"
      autoload :Refork, "heddle/server/cluster/refork"
      autoload :Reload, "heddle/server/cluster/reload"
      autoload :ProtectionSwitch, "heddle/server/cluster/protection_switch"
      autoload :RestartFile, "heddle/server/cluster/restart_file"
      autoload :SignalPipe, "heddle/server/cluster/signal_pipe"
      autoload :Signals, "heddle/server/cluster/signals"
      autoload :Systemd, "heddle/server/cluster/systemd"
      autoload :Upgrade, "heddle/server/cluster/upgrade"
      autoload :Worker, "heddle/server/cluster/worker"
      autoload :WorkerHandle, "heddle/server/cluster/worker_handle"
      autoload :WorkerLifetime, "heddle/server/cluster/worker_lifetime"

      # @param server [Server] that accepts requests
      # @return [Hash{Symbol => String}] how a serving process is described at boot
      def self.boot_details(server)
        { selector: server.selector.to_s, protection: Protection.summary(server.configuration.left_out),
          adapted: Adaptations.summary(server.configuration) }
      end
    end
  end
end

# frozen_string_literal: true

module Heddle
  module CLI
    class InitCommand
      # The words of Puma's configuration (versions 5 to 7), and what stands for each in Heddle's.
      module PumaWords
        # Where Puma listens by default.
        HOST = "0.0.0.0"

        # An option of Heddle's that means the same; the value is the same, too.
        OPTIONS = {
          pidfile: :pidfile, environment: :environment, worker_timeout: :worker_timeout,
          worker_shutdown_timeout: :stop_timeout, persistent_timeout: :idle_timeout, first_data_timeout: :head_timeout,
          http_content_length_limit: :body_limit
        }.freeze

        # A hook of Heddle's that runs at the same step.
        HOOKS = {
          before_fork: :after_mold,
          on_worker_boot: :worker_boot, before_worker_boot: :worker_boot,
          on_worker_shutdown: :worker_stop, before_worker_shutdown: :worker_stop,
          on_worker_fork: :before_worker_fork, before_worker_fork: :before_worker_fork,
          on_booted: :on_booted, after_booted: :on_booted, on_restart: :on_restart, before_restart: :on_restart
        }.freeze

        # Words that need more than a table: {PumaTranslation} has a method for each.
        SPECIAL = %i[threads workers port ssl_bind quiet log_requests preload_app! plugin force_shutdown_after
                     set_default_host stdout_redirect bind_to_activated_sockets early_hints].freeze

        # Plugins that need no equal, each with why.
        PLUGINS = { "tmp_restart" => "touching tmp/restart.txt makes a reload, where there are workers" }.freeze

        # The plugin solid_queue: what it does in its mode `async`, in Heddle's words.
        SOLID_QUEUE = [
          "worker_boot { |index| @jobs = SolidQueue::Supervisor.start(mode: :async, standalone: false) if index == 0 }",
          "worker_stop { @jobs&.stop }"
        ].freeze
        SOLID_QUEUE_REMARK = "Jobs run in threads of the first worker. In a process of their own, bin/jobs, they are " \
                             "in nobody's way."

        # Words that are Heddle's default.
        NEEDLESS = {
          silence_single_worker_warning: "Heddle does not warn of that",
          silence_fork_callback_warning: "Heddle does not warn of that",
          drain_on_shutdown: "a server that stops answers what has been accepted",
          queue_requests: "slow clients never hold a thread",
          wait_for_less_busy_worker: "the least busy worker accepts",
          fork_worker: "workers are forked from a process that has the application loaded",
          max_fast_inline: "pipelined requests get their turn",
          prune_bundler: "the master loads nothing of the application",
          extra_runtime_dependencies: "the master loads nothing of the application",
          restart_command: "a new master is started with the command of the old one",
          raise_exception_on_sigterm: "a server that TERM stops in order ends with success",
          worker_check_interval: "workers tell by themselves that they are alive",
          clean_thread_locals: "a request finds nothing of the one before",
          mutate_stdout_and_stderr_to_sync_on_write: "lines are written whole",
          clear_binds!: "there is nothing before this file that binds",
          nakayoshi_fork: "the process that workers are forked from is warmed up (Process.warmup)"
        }.freeze

        # Words without an equivalent.
        LEFT = {
          app: "the application is in config.ru",
          rackup: "name the file when you start the server: heddle serve path/to/config.ru",
          directory: "start the server in that folder",
          load: "carry that file over by itself: heddle init --from",
          state_path: "there is no file of that kind: `heddle status` asks the server itself",
          state_permission: "there is no file of that kind",
          activate_control_app: "`heddle status`, `reload`, `restart` and `stop` ask the server by a socket that is " \
                                "always there: see `heddle help control`",
          tag: "processes have no names of the user's",
          lowlevel_error_handler: "what the application raises is answered with 500 and logged",
          log_formatter: "lines have a fixed form",
          custom_logger: "lines go to the standard output",
          debug: "there is no such switch",
          set_remote_address: "whose word is taken for a client's address is said by trusted_proxies",
          rack_url_scheme: "whose word is taken for the scheme is said by trusted_proxies",
          worker_boot_timeout: "a worker may take the time that it needs to boot",
          worker_culling_strategy: "there is no choice which worker ends first",
          worker_directory: "start the server in that folder",
          io_selector_backend: "the names differ: see `heddle help selector`",
          shutdown_debug: "requests that are not answered in time are named in the log",
          enable_keep_alives: "connections are kept; idle_timeout says how long",
          max_keep_alive: "a connection may carry any number of requests",
          max_io_threads: "waiting requests need no threads",
          idle_timeout: "a server without work goes on running; Heddle's idle_timeout is Puma's persistent_timeout",
          supported_http_methods: "every method is handed to the application",
          on_stopped: "there is no hook at that step", after_stopped: "there is no hook at that step",
          after_worker_fork: "there is no hook at that step", after_worker_boot: "there is no hook at that step",
          on_refork: "workers are not forked from each other", before_refork: "workers are not forked from each other",
          after_refork: "workers are not forked from each other",
          on_thread_start: "there is no hook at that step", before_thread_start: "there is no hook at that step",
          on_thread_exit: "there is no hook at that step", before_thread_exit: "there is no hook at that step",
          out_of_band: "a worker is never without requests for sure; run such work as a job"
        }.freeze

        NAMES = [*OPTIONS.keys, *HOOKS.keys, :bind, *SPECIAL, *NEEDLESS.keys, *LEFT.keys].freeze
      end
    end
  end
end

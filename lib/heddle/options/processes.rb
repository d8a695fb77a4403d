# frozen_string_literal: true

module Heddle
  module Options
    # Environments in which the server is a single process by default, so that a debugger can use the terminal.
    ONE_PROCESS = %w[development test].freeze

    # Options of the server's processes and threads, of its configuration file, and of its start and stop.
    PROCESSES = [
      Option.new(name: :config, unit: :path, short: "-C", default_words: "config/heddle.rb, else heddle.rb",
                 text: "configuration file; `-` to read no file", example: "",
                 reason: "Set it when the file has another name or is in another folder",
                 details: "The file is read before the application is loaded, and again at each reload. The file " \
                          "can't set this option itself."),
      Option.new(name: :environment, unit: :word, default: "development", short: "-e",
                 variables: %w[HEDDLE_ENVIRONMENT RAILS_ENV APP_ENV RACK_ENV], example: 'environment "production"',
                 text: "environment of the application; Heddle sets RACK_ENV to it and, if you set this option, " \
                       "also RAILS_ENV",
                 reason: "Set it to production on servers that users reach",
                 details: "If the value comes from RAILS_ENV or RACK_ENV, Heddle changes neither, but sets RACK_ENV " \
                          "if it is unset."),
      # The scoreboard has at most 65,535 slots, and each worker may need four (Server::Cluster::SharedResources).
      Option.new(name: :workers, unit: :auto, range: 0..10_000, short: "-w",
                 default: ->(values) { ONE_PROCESS.include?(values[:environment]) ? 1 : :auto },
                 default_words: "auto; 1 in development and test",
                 variables: %w[HEDDLE_WORKERS WEB_CONCURRENCY], example: "workers :auto",
                 text: "number of worker processes; auto starts one per processor (at least 2), or fewer (at least " \
                       "1) if these do not fit into memory",
                 reason: "Lower it when memory is short; set 0 to serve without forking, for example under a debugger",
                 details: "See [Number of workers](processes.md#number-of-workers). With 0, and with 1 in " \
                          "development and test, the server does not fork. Such a server can't reload its code: to " \
                          "deploy, you stop it and start it again."),
      Option.new(name: :reserve_workers, unit: :count, default: 1, range: 0..8, example: "reserve_workers 1",
                 text: "maximum number of extra workers that start on demand and serve while all other workers are " \
                       "blocked; 0 for none",
                 reason: "Raise it when the reserve worker is sometimes blocked, too",
                 details: "A reserve worker starts when a worker has been blocked for 100 ms, and ends 30 s after " \
                          "the last such stall. If workers take more than 150 ms to start, a reserve worker is kept " \
                          "ready instead. A reserve worker serves only while no other worker can; it then opens as " \
                          "many database connections as a worker. Reserve workers exist only in mode fiber, with " \
                          "several processes, and if the option protect includes handoff. See [Reserve " \
                          "workers](stalls.md#reserve-workers)."),
      Option.new(name: :mode, unit: :word, default: :fiber, choices: %i[fiber thread single ractor],
                 text: "how requests run: fiber (each in a fiber), thread (each in a thread), single (one at a time " \
                       "in the main thread) or ractor (experimental: fibers in Ractors)",
                 reason: "Set it to thread when the application, or a gem, does not work in fibers",
                 details: "See [Modes](modes.md)."),
      Option.new(name: :threads, unit: :count, range: 1..10_000, short: "-t",
                 default: ->(values) { values[:mode] == :thread ? 5 : 1 }, default_words: "1; 5 in mode thread",
                 variables: %w[HEDDLE_THREADS], conditions: { "RAILS_MAX_THREADS" => { mode: :thread } },
                 example: "threads 3",
                 text: "number of event loops in each process, each in its own thread (mode ractor: its own Ractor); " \
                       "in mode thread, number of threads that run requests",
                 reason: "Raise it in mode thread when requests spend most of their time waiting for I/O"),
      Option.new(name: :pidfile, unit: :path, variables: %w[HEDDLE_PIDFILE PIDFILE], default_words: "none",
                 example: 'pidfile "tmp/pids/server.pid"',
                 text: "file that contains the server's process ID while it runs",
                 reason: "Set it when a supervisor or a deploy script reads it"),
      Option.new(name: :user, unit: :word, argument: "NAME", default_words: "none", example: 'user "shop:web"',
                 text: "user or user:group that the server switches to after it has opened its sockets",
                 reason: "Set it when root starts the server to open ports below 1024, or to read keys that only " \
                         "root may read",
                 details: "All processes run as this user, the master included. The user becomes the owner of the " \
                          "log file and the pidfile. A restart keeps the sockets open, so it does not need root. A " \
                          "reload reads the configuration, certificates and keys as this user. See " \
                          "[User](processes.md#user-and-rights)."),
      Option.new(name: :drain_delay, unit: :seconds, default: 0, range: 0..86_400,
                 default_words: "0; 5 s in Kubernetes",
                 text: "before the server stops, accept connections for this long, but answer health checks with 503",
                 reason: "Raise it when the load balancer takes longer to notice failed health checks",
                 details: "Heddle detects Kubernetes by the variable KUBERNETES_SERVICE_HOST. The option " \
                          "health_paths lists the health checks. During the delay, responses over HTTP/1.1 have " \
                          "`connection: close`. After the delay the server stops, and sends GOAWAY to HTTP/2 " \
                          "clients. A reload has no delay. See [Behind a balancer](processes.md#behind-a-balancer)."),
      Option.new(name: :stop_timeout, unit: :seconds, range: 0..86_400, example: "stop_timeout 20",
                 default: ->(values) { [25 - values[:drain_delay], 0].max }, default_words: "25 s minus drain_delay",
                 text: "maximum time for running requests to finish when the server stops, counted from the end of " \
                       "drain_delay",
                 reason: "Raise it, and the stop timeout of the supervisor, when requests take longer",
                 details: "Docker, Kubernetes and Kamal kill a server after 10 or 30 s unless they are configured " \
                          "otherwise."),
      Option.new(name: :worker_timeout, unit: :seconds, default: 60, range: 0..86_400,
                 text: "kill and replace a worker whose event loop has been blocked for this long (requests that " \
                       "wait for I/O don't block it); 0 for never",
                 reason: "Raise it when a call may block the event loop for longer; lower it to recover sooner",
                 details: "A worker's event loop sends heartbeats to the master. A blocked loop sends none."),
      Option.new(name: :worker_memory_limit, unit: :bytes, default: 0, range: 0..(1 << 50),
                 example: 'worker_memory_limit "600m"',
                 text: "replace a worker that uses more memory than this; with 0, replace the largest worker when " \
                       "all processes together exceed the option memory_limit",
                 reason: "Set it to replace workers earlier",
                 details: "Heddle measures the proportional share (PSS): memory that several workers share is " \
                          "divided among them. Each worker's limit is up to a tenth below this option, so that not " \
                          "all are replaced at the same time. The new worker serves before the old one ends. By " \
                          "default memory_limit is nine tenths of the memory of the container or machine. When the " \
                          "processes exceed memory_limit, Heddle replaces only workers that are more than a quarter " \
                          "larger than the mold (the process that they were forked from)."),
      Option.new(name: :worker_max_requests, unit: :count, default: 0, range: 0..1_000_000_000,
                 example: "worker_max_requests 100_000",
                 text: "replace a worker when it has served this many requests; 0 for never",
                 reason: "Set it while the application leaks memory",
                 details: "Heddle replaces one worker at a time; the old worker accepts connections until the new " \
                          "one serves. Each worker's limit is up to a tenth below this option, so that not all reach " \
                          "it at the same time. The option has no effect with a single process. See [Lifetime of " \
                          "workers](processes.md#lifetime-of-workers)."),
      Option.new(name: :worker_max_age, unit: :seconds, default: 0, range: 0..31_536_000,
                 example: "worker_max_age 86_400",
                 text: "replace a worker when it has served for this long; 0 for never",
                 reason: "Set it to replace workers regularly, for example once a day",
                 details: "Heddle replaces workers as it does for worker_max_requests."),
      Option.new(name: :refork_after, unit: :count, default: 0, range: 0..1_000_000_000,
                 example: "refork_after 1000",
                 text: "once after each start or reload, when the busiest worker has served this many requests, " \
                       "replace all workers with forks of it; 0 for never",
                 reason: "Set it to save memory: forks of a worker that has served requests share its memory pages",
                 details: "Only with several processes. See [Reforking](processes.md#reforking)."),
      Option.new(name: :solid_queue, unit: :switch, default: false, example: "solid_queue true",
                 variables: %w[HEDDLE_SOLID_QUEUE SOLID_QUEUE_IN_PUMA],
                 text: "run Solid Queue's supervisor in an additional process",
                 reason: "Set it when jobs run on the same machine as the server",
                 details: "This option replaces the gem's plugin for Puma. Heddle forks the supervisor when all " \
                          "workers serve, and stops it when the server stops. If the supervisor ends earlier, the " \
                          "server stops, too. A reload replaces the supervisor. See [Rails](rails.md#solid-queue)."),
      Option.new(name: :selector, unit: :word, argument: "NAME", example: "selector :epoll",
                 default_words: "the best one that works on this machine",
                 text: "system interface that the event loop waits on for I/O: io_uring, epoll, kqueue or select",
                 reason: "Set it to epoll when you suspect a fault of io_uring")
    ].freeze
  end
end

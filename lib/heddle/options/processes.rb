# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # Environments for people who develop: one process, so that a debugger has the terminal to itself.
    ONE_PROCESS = %w[development test].freeze

    # Options of processes, threads and the application's folder.
    PROCESSES = [
      Option.new(name: :config, unit: :path, short: "-C", default_words: "config/heddle.rb, else heddle.rb",
                 text: "the configuration file; - for none", example: "",
                 details: "Read before the application is loaded, and again at a reload. It can't be named in the " \
                          "file itself."),
      Option.new(name: :environment, unit: :word, default: "development", short: "-e",
                 variables: %w[HEDDLE_ENVIRONMENT RAILS_ENV RACK_ENV], example: 'environment "production"',
                 text: "the environment of the application, which finds it in RAILS_ENV and RACK_ENV"),
      Option.new(name: :workers, unit: :auto, range: 0..32, short: "-w",
                 default: ->(values) { ONE_PROCESS.include?(values[:environment]) ? 1 : :auto },
                 default_words: "auto; in development and test 1",
                 variables: %w[HEDDLE_WORKERS WEB_CONCURRENCY], example: "workers :auto",
                 text: "number of processes that serve; auto: as many as processors, and 2 at least",
                 details: "See [Processes](processes.md). With 0 the process that was started serves by itself, " \
                          "and so it does with 1 in development and test. Then nothing is forked, and it can be " \
                          "restarted only with a pause."),
      Option.new(name: :reserve_workers, unit: :count, default: 1, range: 0..8, example: "reserve_workers 1",
                 text: "number of workers that are kept ready for when all others are held up; 0: none",
                 details: "They come on top of `workers`, with the application loaded, and serve nothing while one " \
                          "of the others runs. Each costs the memory of a worker that has not served yet, most of " \
                          "it shared with the mold, and while it serves as many database connections as a worker. " \
                          "Only in mode fiber, with workers of their own and handoff in protect. See " \
                          "[Reserve workers](stalls.md#reserve-workers)."),
      Option.new(name: :mode, unit: :word, default: :fiber, choices: %i[fiber thread single ractor],
                 text: "how requests run: each in a fiber (in Ractors: ractor), each in a thread, or one at a time " \
                       "in the main thread: single",
                 details: "See [Modes](modes.md)."),
      Option.new(name: :threads, unit: :count, range: 1..10_000, short: "-t",
                 default: ->(values) { values[:mode] == :thread ? 5 : 1 }, default_words: "1, in mode thread 5",
                 variables: %w[HEDDLE_THREADS], conditions: { "RAILS_MAX_THREADS" => { mode: :thread } },
                 example: "threads 3",
                 text: "number of threads, or Ractors, in each process: each with a loop; in mode thread, with a " \
                       "request"),
      Option.new(name: :pidfile, unit: :path, variables: %w[HEDDLE_PIDFILE PIDFILE], default_words: "none",
                 example: 'pidfile "tmp/pids/server.pid"',
                 text: "where the number of the server's process is written, as long as it runs"),
      Option.new(name: :stop_timeout, unit: :seconds, default: 30, range: 0..86_400,
                 text: "how long running requests may take to finish when the server is stopped"),
      Option.new(name: :worker_timeout, unit: :seconds, default: 60, range: 0..86_400,
                 text: "kill and replace a worker that has sent no heartbeat for this long; 0: never",
                 details: "The worker's loop sends it; it is missing while a call blocks all requests. Slow requests " \
                          "don't count."),
      Option.new(name: :worker_memory_limit, unit: :bytes, default: 0, range: 0..(1 << 50),
                 example: 'worker_memory_limit "600m"',
                 text: "memory of a worker above which it is replaced; 0: any",
                 details: "Measured is the proportional share (PSS), so that memory which workers have in " \
                          "common is counted once. Up to a tenth less for each worker, so that not all are " \
                          "replaced at the same time. The new one serves before the old one ends."),
      Option.new(name: :out_of_band_gc, unit: :switch, default: false, example: "out_of_band_gc true",
                 text: "major garbage collections between requests, by one worker at a time",
                 details: "Needs Ruby 3.4 and Linux. See [Garbage collection](processes.md#garbage-collection)."),
      Option.new(name: :out_of_band_gc_growth, unit: :bytes, default: 256 << 20, range: (1 << 20)..(1 << 50),
                 text: "growth of a process's memory since its last major collection, past which Ruby makes the " \
                       "next one by itself"),
      Option.new(name: :refork_after, unit: :count, default: 0, range: 0..1_000_000_000,
                 example: "refork_after 1000",
                 text: "requests after which the busiest worker becomes the process from which all workers are " \
                       "forked anew; 0: never",
                 details: "Once after each load of the code, and only with workers of their own. See " \
                          "[Reforking](processes.md#reforking)."),
      Option.new(name: :selector, unit: :word, argument: "NAME", example: "selector :epoll",
                 default_words: "the best one that the machine allows",
                 text: "how the loop hears of events: io_uring, epoll, kqueue or select")
    ].freeze
  end
end

# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # Options of the protections, which keep one request from holding up the others.
    PROTECTION = [
      Option.new(name: :protect, unit: :list, default: %i[offload preempt stall_report handoff],
                 choices: %i[offload preempt stall_report handoff callback_report],
                 none: "off", example: "protect :off",
                 text: "protections against calls that would hold up the loop, or off. offload: native calls that " \
                       "release Ruby's lock run on other threads. preempt: a request that computes in Ruby lets " \
                       "the others run. stall_report: remaining stalls are logged and counted. handoff: during a " \
                       "stall other workers answer the other clients. callback_report: Ruby code that waits in a " \
                       "callback of a native library is logged",
                 details: "In development stall_report brings callback_report with it. See " \
                          "[Callback report](stalls.md#callback-report)."),
      Option.new(name: :offload_allow, unit: :list, default: [], none: "none", argument: "NAMES", advanced: true,
                 example: "offload_allow \"mygem.\", \"other\"",
                 text: "native libraries whose calls may run on any thread, each the start of a file's name, " \
                       "besides those that are known to be good or judged to be safe. Read docs/offload.md first"),
      Option.new(name: :offload_deny, unit: :list, default: [], none: "none", argument: "NAMES", advanced: true,
                 example: "offload_deny \"mygem\", \"other\"",
                 text: "native libraries whose calls stay on the loop's thread, each the start of a file's name, " \
                       "or none but those that are known to need it; it wins over offload_allow"),
      Option.new(name: :offload_libc, unit: :list, default: [], none: "none", argument: "NAMES", advanced: true,
                 example: "offload_libc \"libmylibrary\"",
                 text: "native libraries, each as the start of a file's name: their waits (poll, sleep, recv) are " \
                       "offloaded though they hold Ruby's lock; libpq's always are; see docs/offload.md"),
      Option.new(name: :offload_threads, unit: :auto, default: :auto, range: 1..100_000, advanced: true,
                 example: "offload_threads 256",
                 text: "threads that run offloaded calls in one process, at most; auto: 512, or the container's " \
                       "limit of tasks (pids.max) divided by the workers if that is less",
                 details: "See [How many threads](offload.md#how-many-threads)."),
      Option.new(name: :unprotected_share, unit: :share, default: 0, range: 0..1, advanced: true,
                 example: "unprotected_share 0.1",
                 text: "share of the workers, one at least, that run with protect off, to compare; 0: none",
                 details: "They are the first ones. In one process it does not count. See " \
                          "[Unprotected workers](stalls.md#unprotected-workers).")
    ].freeze
  end
end

# frozen_string_literal: true

module Heddle
  module Options
    # Options of the protections, which keep one request from blocking the others, or report that one does.
    PROTECTION = [
      Option.new(name: :protect, unit: :list, default: %i[offload preempt stall_report handoff],
                 choices: %i[offload preempt stall_report handoff callback_report],
                 none: "off", example: "protect :off",
                 text: "protections against code that blocks the event loop, and reports of such code",
                 reason: "Leave a protection out when you suspect that it causes a fault",
                 details: "offload: native calls that release Ruby's lock run on other threads if this is safe. " \
                          "preempt: a request that computes in Ruby for too long is interrupted, so that other " \
                          "requests run. stall_report: the remaining stalls are logged and counted. handoff: during " \
                          "a stall, other workers serve the other clients of the blocked worker. callback_report: " \
                          "the log reports Ruby code that waits in a callback of a native library; in development " \
                          "stall_report includes callback_report. See [Stalls](stalls.md)."),
      Option.new(name: :offload_allow, unit: :list, default: [], none: "none", argument: "NAMES", advanced: true,
                 example: "offload_allow \"mygem.\", \"other\"",
                 text: "native libraries whose calls may run on any thread, given as prefixes of their file names",
                 reason: "Set it when `heddle doctor` or the log names a library that blocks the loop, and the " \
                         "library meets the conditions in docs/offload.md",
                 details: "Heddle offloads the calls of these libraries, and of those that it knows or judges to be " \
                          "safe. Use `libc:name` for a library that waits in libc (poll, sleep, " \
                          "recv) without releasing Ruby's lock: Heddle then offloads only these waits. It always " \
                          "offloads the waits of libpq. See [Offload](offload.md)."),
      Option.new(name: :offload_deny, unit: :list, default: [], none: "none", argument: "NAMES", advanced: true,
                 example: "offload_deny \"mygem\", \"other\"",
                 text: "native libraries whose calls always run on the event loop's thread, given as prefixes of " \
                       "their file names",
                 reason: "Set it when a library fails on other threads",
                 details: "This option overrides offload_allow. Libraries that are known to need the loop's thread " \
                          "are always denied."),
      Option.new(name: :canary_unprotected, unit: :share, default: 0, range: 0..1, advanced: true,
                 example: "canary_unprotected 0.1",
                 text: "run this share of the workers without protections, such as 0.1 (at least one worker); 0 " \
                       "for none",
                 reason: "Set it to compare latencies and faults of workers with and without protections",
                 details: "The workers with the lowest numbers are the unprotected ones. The option has no effect " \
                          "with a single process. See [Unprotected workers](stalls.md#unprotected-workers).")
    ].freeze
  end
end

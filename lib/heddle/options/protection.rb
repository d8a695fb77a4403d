# frozen_string_literal: true

module Heddle
  module Options
    # Options of the protections, which keep one request from blocking the others.
    PROTECTION = [
      Option.new(name: :protect, unit: :list, default: %i[offload preempt stall_report handoff],
                 choices: %i[offload preempt stall_report handoff callback_report],
                 none: "off", example: "protect :off",
                 text: "protections against calls that block the loop",
                 reason: "Leave one out when you suspect it of a fault",
                 details: "offload: native calls that release Ruby's lock run on other threads. preempt: a request " \
                          "that computes in Ruby lets the others run. stall_report: remaining stalls are logged and " \
                          "counted. handoff: during a stall other workers serve the other clients. callback_report: " \
                          "Ruby code that waits in a callback of a native library is logged; in development " \
                          "stall_report includes it. See [Stalls](stalls.md)."),
      Option.new(name: :offload_allow, unit: :list, default: [], none: "none", argument: "NAMES", advanced: true,
                 example: "offload_allow \"mygem.\", \"other\"",
                 text: "native libraries whose calls may run on any thread, given by the beginnings of their file " \
                       "names",
                 reason: "Set it when `heddle doctor` or the log names such a library, after reading docs/offload.md",
                 details: "The option adds to the libraries that Heddle knows or judges to be safe. Use `libc:name` " \
                          "for a library that waits in libc (poll, sleep, recv) without releasing Ruby's lock: only " \
                          "these waits of the library are offloaded. The waits of libpq are always offloaded. See " \
                          "[Offload](offload.md)."),
      Option.new(name: :offload_deny, unit: :list, default: [], none: "none", argument: "NAMES", advanced: true,
                 example: "offload_deny \"mygem\", \"other\"",
                 text: "native libraries whose calls stay on the loop's thread, given by the beginnings of their " \
                       "file names",
                 reason: "Set it when a library fails on other threads",
                 details: "It overrides offload_allow. Libraries that are known to need the loop's thread are always " \
                          "denied."),
      Option.new(name: :canary_unprotected, unit: :share, default: 0, range: 0..1, advanced: true,
                 example: "canary_unprotected 0.1",
                 text: "share of the workers that run with protect off, but at least one worker; 0 for none",
                 reason: "Set it to compare latencies and faults with and without protect",
                 details: "The first workers are the unprotected ones. The option has no effect with a single " \
                          "process. See [Unprotected workers](stalls.md#unprotected-workers).")
    ].freeze
  end
end

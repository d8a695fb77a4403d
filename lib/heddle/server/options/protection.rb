# frozen_string_literal: true

module Heddle
  class Server
    module Options
      # What keeps one request from holding up the others.
      PROTECTION = [
        Option.new(name: :protect, unit: :list, default: %i[offload preempt stall_report handoff],
                   choices: %i[offload preempt stall_report handoff],
                   none: "off", example: "protect :off",
                   text: "what is done about calls that would hold up the loop, or off; offload: a native call that " \
                         "releases Ruby's lock waits for its own request only; preempt: a request that computes in " \
                         "Ruby lets the others run; stall_report: what holds up the loop all the same is told and " \
                         "counted; handoff: meanwhile other workers answer its other clients"),
        Option.new(name: :offload_deny, unit: :list, default: [], none: "none", argument: "NAMES", advanced: true,
                   example: "offload_deny \"mygem\", \"other\"",
                   text: "native libraries whose calls stay on the loop's thread, each the start of a file's name, " \
                         "or none but those that are known to need it"),
        Option.new(name: :offload_libc, unit: :list, default: [], none: "none", argument: "NAMES", advanced: true,
                   example: "offload_libc \"mylibrary\"",
                   text: "native libraries whose waits (poll, sleep, recv and so on) are offloaded though they hold " \
                         "Ruby's lock; libpq is by itself; read docs/offload.md first"),
        Option.new(name: :unprotected_share, unit: :share, default: 0, range: 0..1, advanced: true,
                   example: "unprotected_share 0.1",
                   text: "share of the workers, one at least, that run with protect off, to compare; 0: none",
                   details: "They are the first ones. In one process it does not count. See " \
                            "[Nothing stalls](stalls.md#a-part-without)."),
        Option.new(name: :quarantine, unit: :switch, default: true, example: "quarantine false",
                   text: "whether an endpoint that was seen to hold Ruby's lock in native code is served by the last " \
                         "worker only, for as long as it is remembered",
                   details: "It takes two workers at least, mode fiber, and the stall report. See " \
                            "[Nothing stalls](stalls.md#the-quarantine)."),
        Option.new(name: :quarantine_after, unit: :seconds, default: 0.25, range: 0.., advanced: true,
                   text: "for how many seconds together an endpoint must lately have held up its workers"),
        Option.new(name: :learned_half_life, unit: :seconds, default: 600, range: 1.., advanced: true,
                   text: "seconds after which what was learned of an endpoint that holds up its worker counts half",
                   details: "See [Nothing stalls](stalls.md#learned-endpoints).")
      ].freeze
    end
  end
end

# frozen_string_literal: true

require_relative "contestants/heddle"
require_relative "contestants/async"
require_relative "contestants/libev"
require_relative "contestants/evt"
require_relative "contestants/uringmachine"
require_relative "contestants/itsi"
require_relative "contestants/threads"
require_relative "contestants/blocking"

require_relative "fibers"
require_relative "ping_pong"
require_relative "queue"
require_relative "own_queue"
require_relative "thread_queue"
require_relative "server"
require_relative "sleepers"
require_relative "gets"
require_relative "slow_gets"
require_relative "fan_out"
require_relative "resolve"
require_relative "pipe"
require_relative "thread_join"
require_relative "children"
require_relative "timeouts"
require_relative "io_memory"

module Bench
  # Heddle's scheduler beside every other implementation of the Fiber scheduler interface, and beside threads.
  class SchedulerSuite < Suite
    ROWS = [Rows::Fibers, Rows::PingPong, Rows::OwnQueue, Rows::Queue, Rows::ThreadQueue, Rows::Server, Rows::Sleepers,
            Rows::Gets, Rows::SlowGets, Rows::FanOut, Rows::Resolve, Rows::Pipe, Rows::ThreadJoin, Rows::Children, Rows::Timeouts,
            Rows::IOMemory].freeze
    CONTESTANTS = [Contestants::Heddle, Contestants::Async, Contestants::Libev, Contestants::Evt,
                   Contestants::Uringmachine, Contestants::Itsi, Contestants::Threads, Contestants::Blocking].freeze

    def name = "scheduler"

    def title = "Fiber schedulers for Ruby"

    def rows = @rows ||= ROWS.flat_map(&:variants)

    def contestants = @contestants ||= CONTESTANTS.flat_map(&:variants)
  end
end

# frozen_string_literal: true

require "heddle/concurrency/task_tree"

module Heddle
  module Concurrency
    # Prints the task tree when the user presses a key: Ctrl-T on systems with SIGINFO, otherwise Ctrl-\ (SIGQUIT). The
    # signal is handled only while a loop runs on the main thread of a program in a terminal, and only if no other code
    # handles it. The previous handler is restored afterwards.
    module TreeSignal
      NAME = Signal.list.key?("INFO") ? "INFO" : "QUIT"

      class << self
        def during(scheduler)
          return yield unless wanted?

          before = trap(NAME) { print_tree(scheduler) }
          trap(NAME, before) unless before == "DEFAULT" # other code handles the signal
          yield
        ensure
          trap(NAME, before) if before == "DEFAULT"
        end

        private

        def wanted?
          Thread.current.equal?(Thread.main) && $stderr.tty? && $stdin.tty?
        end

        # Called in a signal handler, which may interrupt a task. Fiber.blocking keeps the write from switching fibers.
        def print_tree(scheduler)
          text = TaskTree.new(Context.of(scheduler)).to_s
          Fiber.blocking { $stderr.syswrite(text) }
        end
      end
    end
  end
end

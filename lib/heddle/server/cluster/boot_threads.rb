# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Finds the threads that an application has started while it was loaded, and logs a warning about them. The
      # application is loaded in the mold, the process from which workers are forked. A fork copies only the thread that
      # forks, so workers don't have the other threads.
      class BootThreads
        # Patterns for the names or files of threads whose libraries start them again after a fork.
        RENEWED = [/\ATimeout stdlib thread\z/, /\Aheddle log\z/, %r{/lib/heddle/}, %r{/timeout\.rb:\d}].freeze
        private_constant :RENEWED

        # Records the present threads. Must be called before the application is loaded.
        def initialize = @before = Thread.list

        # Logs the threads that were started since {#initialize}, still run, and are not started again after a fork.
        # @param log [#event]
        # @return [void]
        def report(log)
          found = (Thread.list - @before).reject { |thread| renewed?(thread) }
          return if found.empty?

          log.event(:threads_not_forked, threads: found.size, places: found.map { |one| describe(one) })
        end

        private

        # As in Puma, a library can set the thread variable fork_safe to suppress the warning.
        def renewed?(thread)
          thread.thread_variable_get(:fork_safe) || RENEWED.any? { |one| one.match?(thread.name || thread.inspect) }
        end

        # Finds file and line in the text of Thread#inspect, which has the form `#<Thread:0x… name file:line state>`.
        def describe(thread)
          place = thread.inspect[/ (\S+:\d+) \S+>\z/, 1] || "an unknown place"
          thread.name ? "#{thread.name} (#{place})" : place
        end
      end
    end
  end
end

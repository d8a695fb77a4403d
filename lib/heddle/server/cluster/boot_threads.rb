# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The threads that an application starts while the mold loads it. A fork copies only the thread that forks, so
      # workers don't have them.
      class BootThreads
        # Threads that their libraries restart after a fork, by names or files.
        RENEWED = [/\ATimeout stdlib thread\z/, /\Aheddle log\z/, %r{/lib/heddle/}, %r{/timeout\.rb:\d}].freeze
        private_constant :RENEWED

        # Must be called before the application is loaded.
        def initialize = @before = Thread.list

        # @param log [#event]
        # @return [void]
        def report(log)
          found = (Thread.list - @before).reject { |thread| renewed?(thread) }
          return if found.empty?

          log.event(:threads_not_forked, threads: found.size, places: found.map { |one| describe(one) })
        end

        private

        # A library can mark a thread with Puma's variable fork_safe, which means that the thread needs no warning.
        def renewed?(thread)
          thread.thread_variable_get(:fork_safe) || RENEWED.any? { |one| one.match?(thread.name || thread.inspect) }
        end

        # `#<Thread:0x… name file:line state>`
        def describe(thread)
          place = thread.inspect[/ (\S+:\d+) \S+>\z/, 1] || "an unknown place"
          thread.name ? "#{thread.name} (#{place})" : place
        end
      end
    end
  end
end

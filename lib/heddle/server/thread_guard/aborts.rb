# frozen_string_literal: true

module Heddle
  class Server
    class ThreadGuard
      # Replaces `abort_on_exception` while the main thread serves. With Ruby's own `abort_on_exception`, the error of a
      # failed thread is raised in the main thread, in the middle of any request. This class logs the error instead.
      class Aborts
        # Prepended to Thread's singleton class when the main thread serves for the first time.
        module Switch
          # @see Thread.abort_on_exception
          def abort_on_exception = (watch = Aborts.current) ? watch.all : super

          # @see Thread.abort_on_exception=
          def abort_on_exception=(all)
            if (watch = Aborts.current) then watch.all = !!all
            else super
            end
          end
        end
        private_constant :Switch

        # The Ractor-local variable that contains the current Aborts. It is Ractor-local, because each Ractor has its
        # own main thread.
        KEY = :heddle_aborts
        private_constant :KEY

        # @return [Aborts, nil] nil while the main thread does not serve, and in a forked child
        def self.current
          watch = Ractor.current[KEY]
          watch if watch&.here?
        end

        # @return [Boolean] the value that the program has set with Thread.abort_on_exception=
        attr_accessor :all

        # @param log [#event]
        def initialize(log)
          @log = log
          @process = Process.pid
          @ended = Thread::Queue.new
          @all = Thread.abort_on_exception
        end

        # @return [Boolean] whether this is the process that serves
        def here? = Process.pid == @process

        # @return what the block returns
        def during
          Thread.singleton_class.prepend(Switch)
          Thread.abort_on_exception = false
          Ractor.current[KEY] = self
          # Ruby fires this event before it checks the ended thread's own abort_on_exception.
          events = TracePoint.new(:thread_end) { note_end(Thread.current) }
          events.enable
          yield
        ensure
          events&.disable
          Ractor.current[KEY] = nil
          @ended.close
          Thread.abort_on_exception = @all
        end

        private

        # Called on the thread that ends.
        def note_end(thread)
          return unless (@all || thread.abort_on_exception) && here?

          thread.abort_on_exception = false
          @reporter ||= Thread.new { report_failures }
          @ended << thread
        rescue ThreadError, ClosedQueueError
          nil # the server has stopped, or the system allows no more threads
        end

        def report_failures
          while (thread = @ended.pop)
            report_failure(thread)
          end
        end

        def report_failure(thread)
          thread.join
        rescue Exception => e
          @log.event(:thread_failed, thread: thread.inspect, error: ErrorText.summary(e), place: e.backtrace&.first)
        end
      end
    end
  end
end

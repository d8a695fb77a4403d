# frozen_string_literal: true

module Heddle
  class Server
    # Explains errors that occur because this user or container has reached its limit of threads and processes (EAGAIN).
    module ProcessLimit
      MESSAGE = "the system allows this user or container no more threads and processes (EAGAIN). Raise pids.max of " \
                "the container, TasksMax of the systemd unit or `ulimit -u`, or run fewer workers and threads"
      # When a thread can't be created because of EAGAIN, Ruby raises a ThreadError with this message (thread.c). Only
      # the message distinguishes it from other ThreadErrors.
      NO_THREAD = "can't create Thread"
      private_constant :MESSAGE, :NO_THREAD

      # Raised when the system refuses to fork a process of the server.
      class NoProcessError < Errno::EAGAIN
        include Heddle::Error

        def initialize = super("fork(2)")
      end

      # @param number [Integer] the errno of a failed fork
      # @return [SystemCallError]
      def self.failed_fork(number)
        number == Errno::EAGAIN::Errno ? NoProcessError.new : SystemCallError.new("fork(2)", number)
      end

      # Runs a block that forks.
      # @raise [NoProcessError]
      def self.forking
        yield
      rescue Errno::EAGAIN
        raise NoProcessError, cause: nil
      end

      # @param error [Exception]
      # @return [String, nil] what failed and what to do; nil: the error has another cause
      def self.explain(error)
        what = what_was_refused(error)
        what && "#{what}: #{MESSAGE}"
      end

      # `case` can't be used: SystemCallError.=== returns true for any error with the same errno.
      def self.what_was_refused(error)
        if error.is_a?(NoProcessError) then "fork(2)"
        elsif error.is_a?(WatchThread::NoThreadError) then "starting the watch thread"
        elsif error.is_a?(ThreadError) && error.message.start_with?(NO_THREAD) then NO_THREAD
        end
      end
      private_class_method :what_was_refused
    end
  end
end

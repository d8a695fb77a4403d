# frozen_string_literal: true

module Heddle
  class Server
    # The system gives this user or container no more threads or processes (EAGAIN), while the server starts. A
    # backtrace would not say what to do about it.
    module ProcessLimit
      MESSAGE = "the system allows this user or container no more threads and processes (EAGAIN). Raise pids.max of " \
                "the container, TasksMax of the systemd unit or `ulimit -u`, or run fewer workers and threads"
      # The causes that Ruby, a fork and our own threads name.
      CAUSES = /can't create Thread|fork\(2\)|starting the watch/
      private_constant :MESSAGE, :CAUSES

      # @param error [Exception]
      # @return [String, nil] what to do; nil: the error is another one
      def self.explain(error)
        return unless error.is_a?(ThreadError) || error.is_a?(Errno::EAGAIN)

        "#{error.message[CAUSES]}: #{MESSAGE}" if error.message.match?(CAUSES)
      end
    end
  end
end

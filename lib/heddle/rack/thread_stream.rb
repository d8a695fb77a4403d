# frozen_string_literal: true

module Heddle
  module Rack
    # The argument of a streaming body in mode thread. Any thread may write to it.
    class ThreadStream < Stream
      # @see Stream#write
      def write(*strings) = write_all(*strings)

      private

      def thread_calls = nil
    end
  end
end

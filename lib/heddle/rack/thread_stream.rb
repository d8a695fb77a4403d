# frozen_string_literal: true

module Heddle
  module Rack
    # What the streaming body of a request gets that a thread serves. Any thread may write to it.
    class ThreadStream < Stream
      # @see Stream#write
      def write(*strings) = write_all(*strings)

      private

      def check_thread = nil
    end
  end
end

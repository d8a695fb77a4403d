# frozen_string_literal: true

require "test_helper"
require "support/scheduled"
require_relative "conversation"

module Heddle
  module TestHelpers
    # What tests of the HTTP/1 server need: conversations, and a look at what came of them.
    module HTTPCase
      include Scheduled

      GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
      CHUNKED = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

      # @return [Conversation] the last one, as it ended
      attr_reader :conversation

      # How the server hears of events; nil: the system's first way. (Net::Sockets)
      def set = nil

      # Runs the block with a conversation in a loop.
      # @param answer [#call] what the server does with an exchange
      # @param limits [Hash] of the HTTP configuration
      def converse(answer, kind: :stream, reads: true, set: self.set, **limits)
        result = scheduled do |scheduler|
          @conversation = Conversation.new(scheduler, kind:, reads:, set:, limits:, &answer)
          yield @conversation
        ensure
          @kept = !@conversation&.ended?
          @conversation&.close
        end
        raise_assertions
        result
      end

      # Serves the pieces, then the end of input; with `open` that comes only once everything is answered.
      # @return [String] what the client has got
      def serve(*pieces, open: false, **, &answer)
        answer ||= ->(exchange) { reply(exchange, exchange.target) }
        converse(answer, **) do |conversation|
          conversation.say(*pieces)
          conversation.settle if open
          kept = !conversation.ended?
          conversation.hang_up
          conversation.await_end
          @kept_open = kept
        end
        @kept = @kept_open
        conversation.output
      end

      # Was the connection open for another request when the conversation was over?
      def kept? = @kept

      # Answers with a text.
      def reply(exchange, text, status: 200)
        response = exchange.response
        response.start(status, {}, length: text.bytesize)
        response.write_all([text], text.bytesize)
        response.finish
      end

      def get(path) = "GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n"

      def post(length, body = "") = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: #{length}\r\n\r\n#{body}"

      # All that is left of a body.
      def read_all(body)
        text = "".b
        while (bytes = body.read)
          text << bytes
        end
        text
      end

      def bodies(output) = output.scan(/\r\n\r\n(.*?)(?=HTTP|\z)/m).flatten

      def statuses(output) = output.scan(%r{HTTP/1\.1 (\d+)}).flatten.map(&:to_i)

      private

      # What a test says in the server's fibers counts as if it were said in its own.
      def raise_assertions
        failure = conversation.raised.grep(Minitest::Assertion).first
        raise failure if failure
      end
    end
  end
end

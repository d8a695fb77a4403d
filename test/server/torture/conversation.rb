# frozen_string_literal: true

require_relative "../conformance/support/client"
require_relative "../conformance/support/requests"

module Torture
  # What a handful of clients do, always the same, so that the server makes the same calls each time.
  class Conversation
    include Conformance::Requests

    # Seconds without a byte after which the server is taken to hang.
    PATIENCE = 60

    STREAMED = (0..4).map { |number| number.to_s * 30_000 }.join.freeze
    ANSWERS = {
      "/" => "0", "/large" => "x" * 1_000_000, "/file" => "f" * 300_000, "/each" => STREAMED, "/stream" => STREAMED
    }.freeze
    BODY = ("b" * 100_000).freeze
    private_constant :STREAMED, :ANSWERS, :BODY

    # @param port [Integer]
    def initialize(port)
      @port = port
    end

    # @return [Array<String>] exchanges that were not answered as they should be; an answer that is wrong is none of
    #   them, as a server that can't continue may say so or close the connection
    # @raise [Conformance::MalformedError] for an answer that is wrong, or none and no end
    def run
      @failed = []
      keep_alive
      pipelined
      bodies
      answers
      refused
      leave
      @failed
    end

    private

    def keep_alive = with("keep-alive") { |client| 2.times { send_and_check(client, get("/"), "0") } }

    def pipelined
      with("pipelined") do |client|
        client.send_at_once(get("/") * 3)
        3.times { check(client, "0") }
      end
    end

    def bodies
      with("a body with its length") { |client| send_and_check(client, sized(BODY), BODY.bytesize.to_s) }
      with("a chunked body") do |client|
        send_and_check(client, chunked("186a0\r\n#{BODY}\r\n0\r\nX-A: b\r\n\r\n"), BODY.bytesize.to_s)
      end
      with("an expected body") do |client|
        client.send_at_once(post("Content-Length: 5", "Expect: 100-continue"))
        answer = client.answer
        raise IOError unless answer&.status == 100

        send_and_check(client, "hello", "5")
      end
    end

    def answers
      ANSWERS.each { |path, content| with(path) { |client| send_and_check(client, get(path), content) } }
    end

    def refused
      with("a rejection") do |client|
        client.send_at_once("GET / HTTP/1.1\r\n\r\n")
        answer = client.answer
        raise IOError unless answer&.complete

        allowed = [400, 500, 503].include?(answer.status)
        raise Conformance::MalformedError, "#{answer.status} for a bad request" unless allowed
      end
    end

    # Clients that go away in the middle of everything.
    def leave
      [get("/large"), get("/stream"), sized(BODY)[0, 50_000], "GET / HT", get("/") * 3, ""].each do |bytes|
        with(nil) do |client|
          client.send_at_once(bytes)
          client.reset
        end
        with(nil) { |client| client.send_at_once(bytes) }
      end
    end

    def send_and_check(client, bytes, content)
      client.send_at_once(bytes)
      check(client, content)
    end

    def check(client, content)
      answer = client.answer
      raise IOError unless answer&.complete && answer.status == 200
      raise Conformance::MalformedError, "another content: #{answer.content[0, 100]}" unless answer.content == content
    end

    def with(name)
      client = Conformance::Client.new(@port, PATIENCE)
      yield client
    rescue Conformance::Silence
      raise Conformance::Silence, "#{name} is not answered and not ended"
    rescue SystemCallError, IOError
      @failed << name if name
    rescue Conformance::MalformedError => e
      # An answer that ends too early is one that was given up.
      raise unless e.message.start_with?("the connection ends")

      @failed << name if name
    ensure
      client&.close
    end
  end
end

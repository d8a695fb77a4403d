# frozen_string_literal: true

require_relative "cluster_case"

# Workers are replaced while clients of HTTP/1.1 send requests ahead: each is answered in its turn, or comes after a
# response that has said `connection: close`.
class ClusterPipeliningTest < Minitest::Test
  include ClusterCase

  # HEDDLE_RELOADS=20 is what the acceptance of HTTP/2 asks for; three take a few seconds.
  RELOADS = Integer(ENV.fetch("HEDDLE_RELOADS", "3"))
  AHEAD = 20
  # Seconds between two times as many: the workers that start need the processors, too.
  PAUSE = 0.005

  # Sends requests ahead until the end, on one connection after the other.
  class Client
    # @return [Integer] of responses
    attr_reader :answered

    # @yieldreturn [Boolean] whether it is to end
    def initialize(uri, &over)
      @uri = uri
      @over = over
      @number = @answered = 0
      @failures = []
    end

    # @return [Array<String>] what went wrong
    def run
      until @over.call || @failures.any?
        socket = TCPSocket.new(@uri.host, @uri.port)
        sleep PAUSE while ask(socket) && !@over.call
        socket.close
      end
      @failures
    end

    private

    # @return [Boolean] whether the connection stays open
    def ask(socket)
      asked = Array.new(AHEAD) { "/#{@number += 1}" }
      socket.write(asked.map { |path| format(ClusterCase::GET, path) }.join)
      asked.all? { |path| read(socket, path) }
    rescue SystemCallError => e
      @failures << e.message
      false
    end

    def read(socket, path)
      head = socket.gets("\r\n\r\n") or return fail_with("closed before #{path}")
      body = socket.read(head[/^content-length: (\d+)/i, 1].to_i)
      return fail_with("#{path}: #{head[/.*/]} #{body}") unless body == path

      @answered += 1
      !head.match?(/^connection: close/i)
    end

    def fail_with(text)
      @failures << text
      false
    end
  end
  private_constant :Client

  def test_each_request_is_answered_in_its_turn_while_workers_are_replaced
    write("config.ru", 'run ->(env) { [200, { "content-type" => "text/plain" }, [env["PATH_INFO"]]] }')
    serve
    over = false
    clients = Array.new(4) { Client.new(served.uri) { over } }
    threads = clients.map { |client| Thread.new { client.run } }
    RELOADS.times do |i|
      signal("HUP")
      wait_for("reloaded: 2 workers serve the new code", i + 1)
    end
    over = true

    assert_equal [[]] * 4, threads.map(&:value)
    clients.each { |client| assert_operator client.answered, :>, AHEAD }
  end
end

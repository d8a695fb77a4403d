# frozen_string_literal: true

require "socket"

# A small web site for the steps 8 to 10: pages that link to each other, each of which takes its time.
class Site
  PAGES = {
    "/" => %w[/loom /heddle /shuttle], "/loom" => %w[/heddle /warp /weft], "/heddle" => %w[/loom /shuttle /missing],
    "/shuttle" => %w[/weft], "/warp" => %w[/ /loom], "/weft" => %w[/warp /shuttle]
  }.freeze

  # @return [Integer] how many pages it had to serve at once at most
  attr_reader :most

  def initialize(delay: 0.05)
    @delay = delay
    @server = TCPServer.new("127.0.0.1", 0)
    @running = @most = 0
  end

  def url(path = "/") = URI("http://127.0.0.1:#{@server.local_address.ip_port}#{path}")

  # Serves until it is cancelled.
  def serve
    loop do
      client = @server.accept
      Heddle.async(background: true) { answer(client) }
    end
  end

  private

  def answer(client)
    @most = [@most, @running += 1].max
    path = client.gets.split[1]
    nil until client.gets == "\r\n"
    sleep @delay
    client.write(response(PAGES[path], path))
  ensure
    @running -= 1
    client.close
  end

  def response(links, path)
    return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" unless links

    body = "<h1>#{path}</h1>\n#{links.map { |link| "<a href=\"#{link}\">#{link}</a>\n" }.join}"
    "HTTP/1.1 200 OK\r\nContent-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n#{body}"
  end
end

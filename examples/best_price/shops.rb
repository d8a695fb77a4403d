# frozen_string_literal: true

require "socket"

# Stand-ins for shops: each answers after its delay, on a port of its own, in threads of its own.
class Shops
  # @return [Array<String>]
  attr_reader :urls
  # @return [Integer] connections that were opened to all of them
  attr_reader :connections

  def initialize(prices, delay:)
    @connections = 0
    @urls = prices.each_with_index.map { |price, i| open_shop(price, "shop #{i + 1}", delay) }
  end

  private

  def open_shop(price, name, delay)
    listener = TCPServer.new("127.0.0.1", 0)
    Thread.new do
      loop do
        socket = listener.accept
        @connections += 1
        Thread.new { serve(socket, %({"shop":"#{name}","price":#{price}}), delay) }
      end
    end
    "http://127.0.0.1:#{listener.local_address.ip_port}"
  end

  def serve(socket, body, delay)
    while socket.gets("\r\n\r\n")
      sleep delay
      socket.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" \
                   "Content-Length: #{body.bytesize}\r\n\r\n#{body}")
    end
  rescue SystemCallError
    nil
  end
end

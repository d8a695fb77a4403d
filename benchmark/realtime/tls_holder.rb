# frozen_string_literal: true

# tls_holder.rb PORT PATH COUNT
#
# Opens WebSockets over TLS, prints how many are open as a line of JSON, and holds them until its input ends.

require "json"
require "openssl"
require "socket"

port, path, count = ARGV
context = OpenSSL::SSL::SSLContext.new
request = "GET #{path} HTTP/1.1\r\nhost: 127.0.0.1:#{port}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n" \
          "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
held = Array.new(Integer(count)) do
  socket = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", Integer(port)), context).tap(&:connect)
  socket.write(request)
  head = +""
  head << socket.readpartial(4_096) until head.include?("\r\n\r\n")
  socket if head.start_with?("HTTP/1.1 101")
rescue SystemCallError, IOError, OpenSSL::SSL::SSLError
  nil
end.compact
$stdout.sync = true
puts JSON.generate(opened: held.size)
$stdin.gets

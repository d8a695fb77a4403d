# frozen_string_literal: true

require "socket"

# Ports for programs that have to be told theirs. The kernel gives none of these to a connection or to a server that
# asks for port 0, as it may do with one that was free a moment ago.
module FreePort
  RANGE = 12_000..32_000
  private_constant :RANGE

  # Not Kernel#rand: several test processes may have the same seed, and would try the same ports.
  @random = Random.new
  @found = []

  # @return [Integer] of TCP and UDP servers on 127.0.0.1, another one each time
  def self.find
    port = @random.rand(RANGE)
    port = @random.rand(RANGE) while @found.include?(port)
    Addrinfo.tcp("127.0.0.1", port).bind { Addrinfo.udp("127.0.0.1", port).bind { @found << port } }
    port
  rescue Errno::EADDRINUSE
    retry
  end
end

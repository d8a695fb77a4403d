# frozen_string_literal: true

require "socket"
require "tmpdir"

module Bench
  # nghttpd on the second core, which serves a file of DelayServer's short body.
  module Http2Server
    # @yieldparam port [Integer]
    # @raise [Child::Failed]
    def self.run
      Dir.mktmpdir do |folder|
        File.write(File.join(folder, "0"), DelayServer::BODY)
        port = TCPServer.open("127.0.0.1", 0) { |socket| socket.local_address.ip_port }
        pid = start(folder, port)
        await(port)
        yield port
      ensure
        Process.kill(:TERM, pid) && Process.wait(pid) if pid
      end
    end

    def self.start(folder, port)
      Process.spawn("taskset", "-c", DelayServer::CORE.to_s, "nghttpd", "--no-tls", "-a", "127.0.0.1", "-d", folder,
                    port.to_s, out: File::NULL, err: File::NULL)
    rescue Errno::ENOENT
      raise Child::Failed, "there is no taskset or nghttpd (Debian's nghttp2-server)"
    end
    private_class_method :start

    def self.await(port)
      tries = 0
      begin
        TCPSocket.open("127.0.0.1", port, &:close)
      rescue Errno::ECONNREFUSED
        raise Child::Failed, "nghttpd does not answer" if (tries += 1) > 100

        sleep 0.05
        retry
      end
    end
    private_class_method :await
  end
end

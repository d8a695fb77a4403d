# frozen_string_literal: true

# An HTTP server of threads. It prints its port. `/gate/NAME` is answered with NAME when eight such requests are open:
# a client that makes one at a time never gets an answer. `/cut` promises 1,000 bytes, and ends after 10. A socket that
# its client closes amid `/slow` is counted; `/left` says how many.

require "socket"

TOGETHER = 8
LOCK = Mutex.new
GATE = ConditionVariable.new
STATE = Struct.new(:open, :left).new(0, 0)

def pass_gate
  LOCK.synchronize do
    STATE[:open] += 1
    GATE.broadcast if (STATE[:open] % TOGETHER).zero?
    batch = (STATE[:open] - 1) / TOGETHER
    GATE.wait(LOCK) while STATE[:open] < (batch + 1) * TOGETHER
  end
end

def answer(client, body)
  client.write("HTTP/1.1 200 OK\r\netag: \"1\"\r\ncontent-length: #{body.bytesize}\r\n\r\n#{body}")
end

def serve(client)
  while (line = client.gets)
    length = 0
    while (field = client.gets) != "\r\n"
      length = Integer(field[/\d+/]) if field.downcase.start_with?("content-length:")
    end
    client.read(length)
    path = line.split[1].split("?").first
    case path
    when %r{\A/gate/}
      pass_gate
      answer(client, File.basename(path))
    when "/slow"
      client.write("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n0123456789")
      client.read(1) # nothing more is sent: the end of the connection is its answer
      LOCK.synchronize { STATE[:left] += 1 }
      break
    when "/left" then answer(client, LOCK.synchronize { STATE[:left] }.to_s)
    when "/cut"
      client.write("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n0123456789")
      break
    else answer(client, path)
    end
  end
rescue SystemCallError, IOError
  nil
ensure
  client.close
end

server = TCPServer.new("127.0.0.1", 0)
$stdout.puts server.addr[1]
$stdout.flush
loop { Thread.new(server.accept) { |client| serve(client) } }

# frozen_string_literal: true

require "bson"
require "socket"

# Speaks as much of MongoDB's protocol as its driver needs, since Debian has no such server. A query with `number` is
# answered with a document of that number, when eight such queries are open.
class MongoStandIn
  MESSAGE = 2013
  QUERY = 2004
  REPLY = 1
  HELLO = { "isWritablePrimary" => true, "ismaster" => true, "maxBsonObjectSize" => 16_777_216, "maxWireVersion" => 21,
            "minWireVersion" => 0, "maxMessageSizeBytes" => 48_000_000, "maxWriteBatchSize" => 100_000,
            "readOnly" => false, "ok" => 1 }.freeze
  TOGETHER = 8

  def initialize
    @server = TCPServer.new("127.0.0.1", 0)
    @lock = Mutex.new
    @changed = ConditionVariable.new
    @open = 0
    Thread.new { loop { Thread.new(@server.accept) { |socket| serve(socket) } } }
  end

  def address = "127.0.0.1:#{@server.addr[1]}"

  private

  def serve(socket)
    while (head = socket.read(16))
      length, id, _, code = head.unpack("l<4")
      body = socket.read(length - 16)
      send_answer(socket, id, code, answer_to(command_of(code, body)))
    end
  rescue SystemCallError, IOError
    nil
  end

  # A message: flags, the kind of its first section, a document. The older query: flags, a name, two numbers, the
  # document.
  def command_of(code, body)
    start = code == MESSAGE ? 5 : body.index("\0", 4) + 9
    BSON::Document.from_bson(BSON::ByteBuffer.new(body.byteslice(start..)))
  end

  def answer_to(command)
    return HELLO unless command.key?("find")

    number = command.fetch("filter").fetch("number")
    pass_gate
    rows = [{ "_id" => number, "number" => number }]
    { "cursor" => { "id" => BSON::Int64.new(0), "ns" => "matrix.#{command["find"]}", "firstBatch" => rows }, "ok" => 1 }
  end

  def pass_gate
    @lock.synchronize do
      @open += 1
      @changed.broadcast
      last = ((@open - 1) / TOGETHER * TOGETHER) + TOGETHER
      @changed.wait(@lock) while @open < last
    end
  end

  def send_answer(socket, id, code, document)
    data = BSON::Document.new(document).to_bson.to_s
    body = code == MESSAGE ? [0, 0].pack("l<C") + data : [8, 0, 0, 1].pack("l<q<l<l<") + data
    socket.write([16 + body.bytesize, id, id, code == MESSAGE ? MESSAGE : REPLY].pack("l<4") + body)
  end
end

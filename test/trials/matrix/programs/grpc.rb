# frozen_string_literal: true

require "grpc"

# A message that is a text.
Text = Struct.new(:value) do
  def self.decode(bytes) = new(bytes)

  def self.encode(text) = text.value
end

# Answers when eight calls are open, or in pieces.
module Echo
  # The methods, and how texts become bytes.
  class Service
    include GRPC::GenericService

    self.marshal_class_method = :encode
    self.unmarshal_class_method = :decode
    self.service_name = "matrix.Echo"
    rpc :Meet, Text, Text
    rpc :Count, Text, stream(Text)
  end

  # What the server does.
  class Server < Service
    def initialize(together)
      super()
      @together = together
      @lock = Mutex.new
      @met = ConditionVariable.new
      @here = 0
    end

    def meet(text, _call)
      @lock.synchronize do
        @here += 1
        @met.broadcast if @here == @together
        @met.wait(@lock, 30) until @here >= @together
      end
      text
    end

    def count(text, _call) = Array.new(10) { |index| Text.new("#{text.value}-#{index}") }
  end
end

if ARGV == ["server"]
  $stdout.sync = true
  server = GRPC::RpcServer.new(pool_size: 30)
  puts server.add_http2_port("127.0.0.1:0", :this_port_is_insecure)
  server.handle(Echo::Server.new(8))
  server.run
  exit
end

# In a process of its own, without Heddle.
serving = IO.popen([RbConfig.ruby, __FILE__, "server"])
at_exit do
  Process.kill(:KILL, serving.pid)
  serving.close
end
stub = Echo::Service.rpc_stub_class.new("127.0.0.1:#{serving.gets.chomp}", :this_channel_is_insecure)

puts "noted: a call blocks the loop: grpc waits in its own library, which can't be offloaded by itself"
got = clients { |number| Heddle.offload { stub.meet(Text.new(number.to_s), deadline: Time.now + 30).value } }
proves("8 calls open at once within `Heddle.offload`, each with its own answer", got == (0...CLIENTS).map(&:to_s))
got = clients { |number| Heddle.offload { stub.count(Text.new(number.to_s)).map(&:value) } }
proves("8 streams at once within `Heddle.offload`, each with its own pieces",
       got == Array.new(CLIENTS) { |number| Array.new(10) { |index| "#{number}-#{index}" } })

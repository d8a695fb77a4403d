# frozen_string_literal: true

# ractors.rb PORT COUNT: the application of bin/bench modes in so many Ractors, each with a loop of its own that accepts
# from the same socket. No way to run Heddle, but what such a way would be made of: it shows what Ractors bring.

require "heddle"
require "heddle/net/sockets"
require "heddle/rack"
require "socket"
require_relative "application"

# Without it, Ruby says at each start that Ractors are experimental.
Warning[:experimental] = false

# Says what goes wrong.
class PlainLog
  def complaint(_exchange, text) = warn(text)
  def failure(_exchange, error) = warn(error.full_message(highlight: false))
  def client_gone(_exchange, _error) = nil
end

# A Ractor can't load anything by itself before Ruby 3.4.
def load_everything
  Heddle.eager_load
  [Heddle::HTTP, Heddle::HTTP::H1, Heddle::Rack].each do |namespace|
    namespace.constants.each { |name| namespace.const_get(name) }
  end
end

port, count = ARGV.map { |text| Integer(text) }
load_everything
application = Ractor.make_shareable(Bench::Modes::Application.new)
server = TCPServer.new("127.0.0.1", port)
ractors = Array.new(count) do
  Ractor.new(application, server.dup.tap { |copy| copy.autoclose = false }.fileno) do |app, descriptor|
    Heddle.run do
      handler = Heddle::Rack::Handler.new(app, Heddle::Rack::EnvBuilder.new(errors: $stderr), PlainLog.new)
      engine = Heddle::HTTP::H1::Engine.new
      sockets = Heddle::Net::Sockets.new(Fiber.scheduler, protocol: engine) { |exchange| handler.call(exchange) }
      sockets.listen(TCPServer.for_fd(descriptor))
      sleep
    end
  end
end
ractors.each(&:take)

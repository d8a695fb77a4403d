# frozen_string_literal: true

# An application with channels of all kinds, for test/rails/cable_test.rb.

require "rails"
require "action_controller/railtie"
require "action_cable/engine"
require "heddle" # after Rails, as Bundler.require would

# Says what it was given.
class Reports
  def report(error, handled:, source:, **) = puts("reported #{error.message} #{handled} #{source}")
end

class CableApplication < Rails::Application
  config.load_defaults 7.2
  config.root = Dir.pwd
  config.eager_load = true
  config.secret_key_base = "0" * 64
  config.logger = Logger.new($stdout, level: ENV.fetch("CABLE_LOG", "warn").to_sym)
  config.hosts.clear
  config.heddle.cable = ENV["CABLE_STOCK"].nil?
  config.action_cable.cable = { "adapter" => ENV.fetch("CABLE_ADAPTER", "heddle") }
  config.action_cable.allowed_request_origins = ["https://friend.example"]
end

module ApplicationCable
  class Connection < ActionCable::Connection::Base
    identified_by :name

    def connect
      raise "nobody" if request.params["name"] == "fails"

      self.name = request.params["name"] || reject_unauthorized_connection
    end
  end
end

class RoomChannel < ActionCable::Channel::Base
  def subscribed = stream_from("room:#{params[:room]}")
  def speak(data) = ActionCable.server.broadcast("room:#{params[:room]}", { text: data["text"], name: })
  def leave = stop_all_streams
end

class AllKindsChannel < ActionCable::Channel::Base
  before_subscribe { @before = true }
  after_subscribe { transmit({ after: @before }) }
  rescue_from(KeyError) { |error| transmit({ rescued: error.class.name }) }
  periodically(:tick, every: 0.05)

  def subscribed
    reject if params[:reject]
    @numbers = []
    stream_from("doubled", coder: ActiveSupport::JSON) { |number| transmit({ doubled: number * 2 }) }
  end

  def fail = raise("a channel fails")
  def work = %i[one two one].each { |name| connection.perform_work(self, name) }
  def one = transmit({ work: 1 })
  def two = transmit({ work: 2 })
  def burst = 1_500.times { |number| ActionCable.server.broadcast("doubled", number) }
  def thread = Thread.new { 3.times { |number| ActionCable.server.broadcast("doubled", number) } }.join
  def rescued = {}.fetch(:none)

  private

  def tick
    return if @ticked

    @ticked = true
    transmit({ tick: true })
  end
end

class LeavingChannel < ActionCable::Channel::Base
  periodically(-> {}, every: 3_600)

  def subscribed = stream_from("leaving", coder: ActiveSupport::JSON) { nil }

  def unsubscribed
    raise("stays") if params[:fail]
  end
end

CableApplication.initialize!
Rails.error.subscribe(Reports.new)
CableApplication.routes.draw do
  mount ActionCable.server => "/cable"
  delete "connections/:name", to: lambda { |env|
    name = env["action_dispatch.request.path_parameters"][:name]
    ActionCable.server.remote_connections.where(name:).disconnect(reconnect: false)
    [204, {}, []]
  }
  get "held", to: lambda { |_env|
    GC.start
    [200, {}, [ObjectSpace.each_object(LeavingChannel).count.to_s]]
  }
  post "broadcast", to: lambda { |env|
    request = Rack::Request.new(env)
    ActionCable.server.broadcast(request.params["stream"], JSON.parse(request.params["message"]))
    [204, {}, []]
  }
end

run CableApplication

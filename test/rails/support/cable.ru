# frozen_string_literal: true

# An application with channels of all kinds, for test/rails/cable_test.rb.

require "rails"
require "action_controller/railtie"
require "action_cable/engine"
require "global_id/railtie"
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
  cable = { "adapter" => ENV.fetch("CABLE_ADAPTER", "heddle"), "url" => ENV.fetch("CABLE_URL", nil) }
  config.action_cable.cable = cable.compact.with_indifferent_access # as config/cable.yml
  config.action_cable.allowed_request_origins = ["https://friend.example"]
  modules = ENV.fetch("CLIENT_MODULES", nil)
  config.middleware.use Rack::Static, urls: ["/@anycable", "/nanoevents"], root: modules if modules
end

# A page with AnyCable's client, which comes back when the page says so.
CLIENT = <<~HTML
  <!doctype html><title>cable</title>
  <script type="importmap">
    { "imports": { "@anycable/core": "/@anycable/core/index.js", "@anycable/web": "/@anycable/web/index.js",
                   "nanoevents": "/nanoevents/index.js" } }
  </script>
  <script type="module">
    import { createCable } from "@anycable/web"
    window.log = []
    window.states = []
    window.cable = createCable(`ws://${location.host}/cable?name=ada`, {
      protocol: "actioncable-v1-ext-json", reconnectStrategy: () => 3_600_000
    })
    window.comeBack = () => cable.connect()
    const room = cable.subscribeTo("RoomChannel", { room: 12 })
    room.on("message", (message) => log.push(message))
    room.on("connect", () => states.push("connected"))
    cable.on("disconnect", () => states.push("disconnected"))
  </script>
HTML

# A record that is found by its id, unless a file says that all are gone.
class Owner
  include GlobalID::Identification

  attr_reader :id

  def self.find(id) = (new(id) unless File.exist?(ENV.fetch("OWNERS_GONE", "/nonexistent")))

  def initialize(id) = @id = id
end

module ApplicationCable
  class Connection < ActionCable::Connection::Base
    identified_by :name, :owner

    def connect
      raise "nobody" if request.params["name"] == "fails"

      self.name = request.params["name"] || reject_unauthorized_connection
      self.owner = Owner.new(name[/\d+/]) if name.start_with?("owner")
    end
  end
end

class RoomChannel < ActionCable::Channel::Base
  def subscribed = stream_from("room:#{params[:room]}")
  def speak(data) = ActionCable.server.broadcast("room:#{params[:room]}", { text: data["text"], name: })
  def leave = stop_all_streams
  def whose = transmit({ owner: owner&.id })
  def shout = ActionCable.server.broadcast("room:#{params[:room]}", "x" * 100_000)
end

class AllKindsChannel < ActionCable::Channel::Base
  before_subscribe { @before = complete? }
  after_subscribe { transmit({ after: @before }) }
  rescue_from(KeyError) { |error| transmit({ rescued: error.class.name }) }
  periodically(:tick, every: 0.05)

  def subscribed
    reject if params[:reject]
    @numbers = []
    stream_from("doubled", coder: ActiveSupport::JSON) { |number| transmit({ doubled: complete? && (number * 2) }) }
  end

  def fail = raise("a channel fails")
  def fail_badly = raise(Class.new(Exception), "a channel fails badly")
  def work = %i[one two one].each { |name| connection.perform_work(self, name) }
  def one = transmit({ work: complete? && 1 })
  def two = transmit({ work: 2 })
  def burst = 1_500.times { |number| ActionCable.server.broadcast("doubled", number) }
  def thread = Thread.new { 3.times { |number| ActionCable.server.broadcast("doubled", number) } }.join
  def rescued = {}.fetch(:none)

  private

  def tick
    return if @ticked

    @ticked = true
    transmit({ tick: complete? })
  end

  # Has each frame a file and a line?
  def complete? = caller_locations(0).all? { |frame| frame.path && frame.lineno.positive? }
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
    ActionCable.server.remote_connections.where(name:, owner: nil).disconnect(reconnect: false)
    [204, {}, []]
  }
  get "client", to: ->(_env) { [200, { "content-type" => "text/html" }, [CLIENT]] }
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

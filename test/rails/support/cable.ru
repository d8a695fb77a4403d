# frozen_string_literal: true

# An application with channels of all kinds, for test/rails/cable_test.rb.

require "rails"
require "action_controller/railtie"
require "action_cable/engine"
require "heddle" # after Rails, as Bundler.require would

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
      self.name = request.params["name"] || reject_unauthorized_connection
    end
  end
end

class RoomChannel < ActionCable::Channel::Base
  def subscribed = stream_from("room:#{params[:room]}")
  def speak(data) = ActionCable.server.broadcast("room:#{params[:room]}", { text: data["text"], name: })
  def leave = stop_all_streams
end

CableApplication.initialize!
CableApplication.routes.draw do
  mount ActionCable.server => "/cable"
  post "broadcast", to: lambda { |env|
    request = Rack::Request.new(env)
    ActionCable.server.broadcast(request.params["stream"], JSON.parse(request.params["message"]))
    [204, {}, []]
  }
end

run CableApplication

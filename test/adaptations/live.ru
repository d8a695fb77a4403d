# frozen_string_literal: true

# Actions of ActionController::Live, which run in threads, and a middleware that sets state for the request.

require "rails"
require "action_controller/railtie"
require "heddle"

class Tenant < ActiveSupport::CurrentAttributes
  attribute :account
end

class ChooseTenant
  def initialize(app) = @app = app

  def call(env)
    Tenant.account = env["QUERY_STRING"]
    Thread.current[:tenant] = env["QUERY_STRING"]
    @app.call(env)
  end
end

class LiveApplication < Rails::Application
  config.load_defaults Rails::VERSION::STRING.to_f
  config.root = Dir.pwd
  config.eager_load = true
  config.secret_key_base = "0" * 64
  config.logger = Logger.new($stdout, level: :fatal)
  config.hosts.clear
  config.middleware.use ChooseTenant
end

class TenantsController < ActionController::Base
  include ActionController::Live

  def show
    2.times do
      response.stream.write("#{Tenant.account} #{Thread.current[:tenant]} ")
      sleep 0.05
    end
    response.stream.write(Thread.current.keys.grep(/heddle/).inspect)
  ensure
    response.stream.close
  end

  def plain = render(plain: Tenant.account.inspect)
end

LiveApplication.initialize!
LiveApplication.routes.draw do
  get "show" => "tenants#show"
  get "plain" => "tenants#plain"
end

run LiveApplication

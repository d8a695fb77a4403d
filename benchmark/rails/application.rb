# frozen_string_literal: true

require "rails"
require "active_record/railtie"
require "action_controller/railtie"
require "action_view/railtie"

# A Rails application as small as it can be and still do what most do: a few queries, a page of HTML. In production mode
# and loaded eagerly; nothing in it favours a server.
class Pages < Rails::Application
  config.load_defaults 8.0
  config.root = __dir__
  config.eager_load = true
  config.enable_reloading = false
  config.consider_all_requests_local = false
  config.secret_key_base = "0" * 64
  config.logger = Logger.new(nil)
  config.log_level = :warn
  config.hosts.clear
  # Falcon asks for it; under Puma a thread has one fiber, and it is the same.
  config.active_support.isolation_level = :fiber
  # The same for all: as many connections as Puma has threads.
  config.paths["config/database"].unshift(File.expand_path("database.yml", __dir__))
end

require_relative "note"
require_relative "notes_controller"

Pages.initialize!
Pages.routes.draw do
  get "hello" => "notes#hello"
  get "page" => "notes#index"
  get "slow-page" => "notes#slow"
  get "board" => "notes#board"
end

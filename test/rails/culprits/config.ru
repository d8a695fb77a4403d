# frozen_string_literal: true

# The application of test/rails/culprits_test.rb, which says what makes its requests slow.

ENV["RAILS_ENV"] = "production"
require "rails"
require "active_record/railtie"
require "action_controller/railtie"
require "action_view/railtie"
require "heddle" # after Rails, as Bundler.require would

class CulpritsApplication < Rails::Application
  config.load_defaults 8.1
  config.root = __dir__
  config.autoload_lib(ignore: [])
  config.eager_load = true
  config.enable_reloading = false
  config.logger = Logger.new(nil)
  config.public_file_server.enabled = false
  config.cache_store = :memory_store, { size: 1 << 30 }
  config.secret_key_base = "0" * 64
  config.hosts.clear
end

CulpritsApplication.initialize!
CulpritsApplication.routes.draw do
  %w[quick thumbnail export cart rate setting warm audited].each { |name| get name, to: "reports##{name}" }
  get "reports/:id", to: "reports#show"
  get "shop/:name", to: "shops#show"
end

SETTINGS = SettingsStore.new(RateService.new(ENV.fetch("RATE_URL")))
Cart.fill
Shop.fill

# Each culprit has a file at once, not one in ten seconds, and none is written because of what is only load.
Heddle::Server::Recorder.prepend(Module.new do
  def end(exchange) = exchange.target == "/quick" ? nil : super

  private

  def paused?(kind) = kind == :stall
end)

run CulpritsApplication

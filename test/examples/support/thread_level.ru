# frozen_string_literal: true

# A Rails application that insists on isolation by thread.

require "rails"
require "action_controller/railtie"

class Stubborn < Rails::Application
  config.load_defaults 8.0
  config.eager_load = false
  config.secret_key_base = "0" * 64
  config.logger = Logger.new(nil)
  config.active_support.isolation_level = :thread
end

Stubborn.initialize!
Stubborn.routes.draw do
  root to: ->(_env) { [200, {}, [ActiveSupport::IsolatedExecutionState.isolation_level.to_s]] }
end
run Stubborn

# frozen_string_literal: true

workers Integer(ENV.fetch("WEB_CONCURRENCY", 2))
threads 3, 3
preload_app!
port ENV.fetch("PORT", 9292)
environment ENV.fetch("RACK_ENV", "development")

before_fork { DB.disconnect }

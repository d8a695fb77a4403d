# frozen_string_literal: true

require_relative "../support/application"

module Switch
  # An API of Roda with Sequel, rack-timeout, New Relic, Sentry, and Sidekiq with a Redis of its own.
  class RackApplication < Application
    extend Checks

    HERE = __dir__
    private_constant :HERE

    # @return [String] the file to which Sentry sends
    def sentry_file = File.join(@logs, "sentry")

    # Nothing leaves the machine: nobody listens on port 9.
    def environment
      super.merge("REDIS_URL" => "redis://127.0.0.1:#{redis}/0", "SENTRY_FILE" => sentry_file,
                  "NEW_RELIC_LICENSE_KEY" => "0123456789" * 4, "NEW_RELIC_APP_NAME" => "shop",
                  "NEW_RELIC_HOST" => "127.0.0.1", "NEW_RELIC_PORT" => "9", "NEW_RELIC_LOG" => "log/newrelic.log",
                  "NEW_RELIC_MONITOR_MODE" => "true")
    end

    private

    def write
      FileUtils.cp([File.join(HERE, "Gemfile"), File.join(HERE, "Gemfile.lock")], folder)
      copy_files(File.join(HERE, "files"))
      FileUtils.mkdir_p(File.join(folder, "log"))
    end

    # docs/rails.md names the line for Capybara.
    def switch
      run("bundle", "exec", "heddle", "init", "--from", "config/puma.rb")
      FileUtils.rm(File.join(folder, "config/puma.rb"))
      line = %(require "capybara/rspec"\n)
      replace("spec/spec_helper.rb", line, %(#{line}require "heddle/capybara"\n))
    end

    def serving(environment, port)
      if server == "heddle"
        ["bundle", "exec", "heddle", "serve", "--bind", "127.0.0.1:#{port}"]
      else
        ["bundle", "exec", "puma", "--bind", "tcp://127.0.0.1:#{port}", "--environment", environment.to_s]
      end
    end

    def variables(environment) = { "RACK_ENV" => environment.to_s }

    # @return [Integer] its port
    def redis
      @redis ||= Served.free_port.tap do |port|
        pid = Process.spawn("redis-server", "--port", port.to_s, "--bind", "127.0.0.1", "--save", "", "--dir", @logs,
                            out: File::NULL)
        at_exit do
          Process.kill("TERM", pid)
          Process.wait(pid)
        end
      end
    end
  end
end

Dir[File.join(__dir__, "checks/*.rb")].each { |file| require file }

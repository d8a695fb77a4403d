# frozen_string_literal: true

require_relative "../support/application"

module Switch
  # What `rails new` makes, with a scaffold and the few actions that the checks ask for.
  class RailsApplication < Application
    extend Checks

    HERE = __dir__
    private_constant :HERE

    private

    def write
      gemfile = { "BUNDLE_GEMFILE" => File.join(HERE, "Gemfile") }
      FileUtils.cp(File.join(HERE, "Gemfile.lock"), folder)
      run("bundle", "exec", "rails", "new", folder, "--name", "shop", "--skip-git", "--quiet",
          environment: { **gemfile, "RUBYOPT" => "#{ENV.fetch("RUBYOPT", nil)} -r#{HERE}/bundle_locally.rb" },
          folder: File.dirname(folder))
      run("bin/rails", "generate", "scaffold", "Post", "title:string", "body:text", "picture:attachment", "--quiet")
      copy_files(File.join(HERE, "files"))
      copy_tests
      add_routes
      run("bin/rails", "active_storage:install", "db:prepare")
      run("bin/rails", "db:prepare", "assets:precompile", environment: variables(:production))
      FileUtils.rm_rf(File.join(folder, "public/assets.development"))
    end

    # Under other names here, where bin/test would take them for its own.
    def copy_tests
      { "posts" => "system", "many" => "models" }.each do |name, kind|
        FileUtils.mkdir_p(File.join(folder, "test", kind))
        FileUtils.cp(File.join(HERE, "tests/#{name}.rb"), File.join(folder, "test", kind, "#{name}_test.rb"))
      end
    end

    def add_routes
      replace("config/routes.rb", /^end\s*\z/, <<~RUBY)
          get "probes/:action", controller: "probes"
          post "probes/:action", controller: "probes"
          get "board" => "boards#show"
          get "live/:action", controller: "live"
        end
      RUBY
    end

    # In development `bin/rails server` as before, in production README's three commands.
    def switch
      run("bundle", "exec", "heddle", "init", "--from", "config/puma.rb")
      run("bundle", "exec", "heddle", "doctor", environment: variables(:production))
      FileUtils.rm(File.join(folder, "config/puma.rb"))
    end

    def serving(environment, port)
      if environment == :production && server == "heddle"
        ["bundle", "exec", "heddle", "serve", "--bind", "127.0.0.1:#{port}"]
      else
        ["bin/rails", "server", "--binding", "127.0.0.1", "--port", port.to_s]
      end
    end

    def variables(environment)
      return { "RAILS_ENV" => environment.to_s } unless environment == :production

      # The last one is Rails' own config/deploy.yml's.
      { "RAILS_ENV" => "production", "SECRET_KEY_BASE" => "0" * 64, "SOLID_QUEUE_IN_PUMA" => "true" }
    end
  end
end

Dir[File.join(__dir__, "checks/*.rb")].each { |file| require file }

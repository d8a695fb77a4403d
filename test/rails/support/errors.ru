# frozen_string_literal: true

# An application in development, for test/rails/error_pages_test.rb: what Rails shows of errors and mails.

ENV["RAILS_ENV"] = "development"
require "rails"
require "action_controller/railtie"
require "action_view/railtie"
require "action_mailer/railtie"
require "web_console"
require "heddle" # after Rails, as Bundler.require would

class ErrorApplication < Rails::Application
  config.load_defaults 8.1
  config.root = Dir.pwd
  config.eager_load = false
  config.consider_all_requests_local = true
  config.secret_key_base = "0" * 64
  config.hosts.clear
  config.logger = Logger.new($stdout, level: :fatal)
  config.action_mailer.show_previews = true
  config.action_mailer.preview_paths = [File.join(Dir.pwd, "previews")]
end

class PagesController < ActionController::Base
  def fine = render(plain: "fine")

  def fail
    secret = 6 * 7
    raise "on purpose, not #{secret + 1}"
  end
end

class Letters < ActionMailer::Base
  def greeting
    mail(from: "a@example.org", to: "b@example.org", subject: "Greeting", content_type: "text/html",
         body: "<p id=greeting>Hello, Ada</p>")
  end
end

ErrorApplication.initialize!
ErrorApplication.routes.draw do
  get "fine" => "pages#fine"
  get "fail" => "pages#fail"
end

run ErrorApplication

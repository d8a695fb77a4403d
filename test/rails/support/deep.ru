# frozen_string_literal: true

# A Rails application with a request that computes far inside of monitors, until another request was answered.

require "rails"
require "action_controller/railtie"
require "monitor"

class Deep < Rails::Application
  config.load_defaults 8.0
  config.root = Dir.pwd
  config.eager_load = true
  config.secret_key_base = "0" * 64
  config.logger = Logger.new(nil)
  config.hosts.clear
end

class DeepController < ActionController::Base
  LIMIT = 30
  @answered = 0
  class << self
    attr_accessor :answered
  end

  def other = render(plain: (self.class.answered += 1).to_s)

  def compute
    render plain: nest(80) {
      before = self.class.answered
      ends = now + LIMIT
      nil until self.class.answered > before || now > ends
      "#{caller.size} #{self.class.answered > before}"
    }
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def nest(depth, &block) = depth.zero? ? yield : Monitor.new.synchronize { [1].map { nest(depth - 1, &block) }.first }
end

Deep.initialize!
Deep.routes.draw do
  get "other", to: "deep#other"
  get "compute", to: "deep#compute"
end

run Deep

# frozen_string_literal: true

ENV["RACK_ENV"] = "test"
require_relative "../app"
require "capybara/rspec"
require "net/http"
require "rack/test"

Capybara.app = Shop.freeze.app

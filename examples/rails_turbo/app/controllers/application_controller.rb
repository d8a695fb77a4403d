# frozen_string_literal: true

# What all controllers share.
class ApplicationController < ActionController::Base
end

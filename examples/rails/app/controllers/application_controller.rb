# frozen_string_literal: true

# What all controllers share.
class ApplicationController < ActionController::Base
  before_action { Current.request_id = request.request_id }
end

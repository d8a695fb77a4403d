# frozen_string_literal: true

# Answers after a while. Only this request waits.
class NapsController < ApplicationController
  def show
    before = Current.request_id
    sleep params.fetch(:seconds, 1).to_f.clamp(0, 60)
    render json: { slept: params.fetch(:seconds, 1).to_f, request_id: request.request_id,
                   same_request_after_the_nap: before == Current.request_id && before == request.request_id }
  end
end
